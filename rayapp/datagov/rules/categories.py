"""Categories of the catalogue, what tables hold (flags), and the names that filters know. Pure."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rayapp.datagov.ports import FLAGS, Field, Resource
from rayapp.text.normalize import normalize
from rayapp.text.utterance import reading

GENERAL = "general"
# More than these are noise: the source files two datasets under twelve categories each.
MAX_CATEGORIES = 3
# Where a word stands says how much it tells of a dataset (our choice).
TITLE_WEIGHT, TAG_WEIGHT, OWNER_WEIGHT = 3, 2, 2


@dataclass(frozen=True, slots=True)
class Category:
    """`he_about`, `en_about`: what is in it; `stems`: how words begin that speak of it."""

    slug: str
    he: str
    en: str
    he_about: str
    en_about: str
    stems: tuple[str, ...] = ()


def _category(slug: str, he: str, en: str, he_about: str, en_about: str, stems: str) -> Category:
    return Category(slug, he, en, he_about, en_about, tuple(stems.split()))


_ALL = (
    _category(
        "agriculture",
        "חקלאות",
        "Agriculture",
        "גידולים, בעלי חיים, שירותים וטרינריים, ריסוס והדברה, מחירי תוצרת ופיקוח על מזון",
        "crops, livestock, veterinary services, pesticides, produce prices and food control",
        "חקלא וטרינר צמח זרע ריסוס גידול משק agricult veterinar farm crop plant",
    ),
    _category(
        "communications",
        "תקשורת",
        "Communications",
        "טלפוניה, דואר, אינטרנט, שידורים, רישיונות ותדרים",
        "telephony, post, internet, broadcasting, licences and frequencies",
        "תקשורת דואר טלפונ סלולר שידור תדר communicat telecom broadcast postal numbering plmn",
    ),
    _category(
        "culture",
        "תרבות וספורט",
        "Culture and sport",
        "מוזיאונים, ספריות, קולנוע, תיאטרון, ארכיונים, מתקני ספורט ותמיכות",
        "museums, libraries, cinema, theatre, archives, sports facilities and grants",
        "תרבות ספורט קולנוע ספרי מוזיאו ארכיון תיאטר culture sport museum librar archive",
    ),
    _category(
        "demographics",
        "אוכלוסייה ודמוגרפיה",
        "Population and demography",
        "תושבים, לידות, שמות, גילים, משקי בית ומפקדים",
        "residents, births, names, ages, households and censuses",
        "אוכלוס דמוגרפ תושב לידות מפקד population demograph census resident",
    ),
    _category(
        "economy",
        "כלכלה ותעסוקה",
        "Economy and employment",
        "תעשייה, מסחר, עבודה, יבוא ויצוא, עסקים ודורשי עבודה",
        "industry, trade, labour, imports and exports, businesses and job seekers",
        "כלכל תעשי מסחר תעסוק עבודה יבוא יצוא עסק econom industr trade employ labor labour",
    ),
    _category(
        "education",
        "חינוך",
        "Education",
        "בתי ספר, גני ילדים, תלמידים, מבחנים, השכלה גבוהה ומורים",
        "schools, kindergartens, pupils, exams, higher education and teachers",
        "חינוך ספר תלמיד גני בגרות מורים השכלה סטודנט education school student kindergarten",
    ),
    _category(
        "environment",
        "איכות הסביבה",
        "Environment",
        "אוויר, פסולת, מיחזור, קרינה, זיהום, שמורות וחומרים מסוכנים",
        "air, waste, recycling, radiation, pollution, reserves and hazardous materials",
        "סביבה סביבת פסולת זיהום מיחזור קרינה אקלים environment waste pollut recycl climate sea",
    ),
    _category(
        "finance",
        "כספים ותקציב",
        "Finance and budget",
        "תקציב המדינה, מיסים, בנקים, ביטוח, פנסיה, ריבית ושערי מטבע",
        "the state budget, taxes, banks, insurance, pensions, interest and exchange rates",
        "אוצר תקציב מיסים מסים בנק ביטוח פנסי גמל ריבית מטבע financ budget tax bank insur pension",
    ),
    _category(
        "general",
        "כללי",
        "General",
        "מאגרים שאינם שייכים לתחום אחד",
        "datasets that belong to no single field",
        "",
    ),
    _category(
        "geography",
        "גאוגרפיה ומיפוי",
        "Geography and mapping",
        "מפות, גבולות, ישובים, תצלומי אוויר, גושים וחלקות ושכבות מידע גאוגרפי",
        "maps, borders, settlements, aerial photos, parcels and layers of geographic information",
        "מיפוי מפות מפה גאוגרפ גיאוגרפ ישוב יישוב שכב גבול geograph geospat map gis border",
    ),
    _category(
        "health",
        "בריאות",
        "Health",
        "בתי חולים, קופות חולים, תרופות, חיסונים, מחלות ורישוי מקצועות רפואיים",
        "hospitals, health funds, medicines, vaccines, diseases and medical licences",
        "בריאות חולים תרופ רפוא חיסונ מחלה מחלת קורונה health hospital medic drug vaccin disease",
    ),
    _category(
        "housing",
        "בינוי ושיכון",
        "Housing and construction",
        "דירות, בנייה, תכנון, קרקעות, מכרזים ומשכנתאות",
        "apartments, construction, planning, land, tenders and mortgages",
        "דיור דירות שיכון בינוי בנייה תכנון קרקע מקרקעין housing construct planning building land",
    ),
    _category(
        "immigration",
        "עלייה והגירה",
        "Immigration",
        "עולים, קליטה, אשרות, כניסות ויציאות ועובדים זרים",
        "new immigrants, absorption, visas, entries and exits and foreign workers",
        "עלייה עולים קליטה הגירה אשרות immigra migra aliyah visa",
    ),
    _category(
        "justice",
        "משפט ואכיפה",
        "Justice and enforcement",
        "בתי משפט, חקיקה, עמותות, חברות, משטרה, הוצאה לפועל ורישוי",
        "courts, legislation, non-profits, companies, police, enforcement and licensing",
        "משפט חקיקה חוק עמותות משטר אכיפה פשיטת עורכי נוטריון שופט justice court law police legal",
    ),
    _category(
        "municipal",
        "רשויות מקומיות",
        "Local government",
        "עיריות, מועצות, שירותים לתושב, ארנונה, בחירות ותשתיות עירוניות",
        "municipalities, councils, services for residents, local tax, elections and city works",
        "עיריית עירי ארנונה מועצה בחירות municipal council city election",
    ),
    _category(
        "religion",
        "דת",
        "Religion",
        "מועצות דתיות, כשרות, בתי דין רבניים, נישואין, קבורה ובתי כנסת",
        "religious councils, kashrut, rabbinical courts, marriage, burial and synagogues",
        "דתי רבנות רבני כשרות נישואין קבורה מקוו religio rabbi kosher marriage burial",
    ),
    _category(
        "technology",
        "מדע וטכנולוגיה",
        "Science and technology",
        "מחקר, חדשנות, סייבר, שירותים דיגיטליים ומערכות מידע",
        "research, innovation, cyber security, digital services and information systems",
        "מדע טכנולוג חדשנות מחקר סייבר דיגיטל scien technolog innovat research cyber digital",
    ),
    _category(
        "tourism",
        "תיירות",
        "Tourism",
        "מלונות, אתרים, מסלולים, מורי דרך, תיירים ולינה",
        "hotels, sights, trails, tour guides, visitors and stays",
        "תייר מלונ אטרקצ מסלול touris hotel attraction guest",
    ),
    _category(
        "transportation",
        "תחבורה",
        "Transportation",
        "כלי רכב, רישוי, תחבורה ציבורית, כבישים, תאונות, תעופה וספנות",
        "vehicles, licensing, public transport, roads, accidents, aviation and shipping",
        "תחבורה רכב נהיגה כביש רכבת אוטובוס תעופה טיסות ספנות נהג transport vehicle driv road "
        "aviation bus rail traffic",
    ),
    _category(
        "water",
        "מים",
        "Water",
        "קידוחים, מפלסים, איכות מי שתייה, ביוב, קולחין, נחלים וכנרת",
        "wells, levels, drinking water quality, sewage, effluents, streams and the Kinneret",
        "מים המים קידוח ביוב קולחין נחל כנרת שתייה water sewage well aquifer",
    ),
    _category(
        "welfare",
        "רווחה וביטוח לאומי",
        "Welfare and social security",
        "קצבאות, זקנה, נכות, ילדים בסיכון, מעונות, ניצולי שואה ושוויון חברתי",
        "benefits, old age, disability, children at risk, day care, survivors and social equality",
        "רווחה קצבא גמלא נכות זקנה סיעוד מעונות שואה welfare social disab elderly survivor",
    ),
)
CATEGORIES: dict[str, Category] = {category.slug: category for category in _ALL}

# The dictionary has these domains beside the categories; `general` has no words of its own.
_MORE_DOMAINS = (
    _category(
        "government",
        "ממשל",
        "Government",
        "משרדי ממשלה, החלטות, מכרזים, שירות הציבור וחופש המידע",
        "ministries, decisions, tenders, the civil service and freedom of information",
        "",
    ),
    _category(
        "statistics",
        "סטטיסטיקה",
        "Statistics",
        "מדדים, סקרים, ממוצעים, שיעורים וסדרות עתיות",
        "indices, surveys, averages, rates and time series",
        "",
    ),
)
DOMAINS: dict[str, Category] = {
    category.slug: category for category in (*_ALL, *_MORE_DOMAINS) if category.slug != GENERAL
}

_WORD = re.compile(r"[^\W\d_]+")
_PREFIXES = (re.compile("^[והבלמכש](?=[א-ת]{3})"), re.compile("^[והבלמכש]{2}(?=[א-ת]{3})"))


def main_category(categories: Iterable[str]) -> str:
    """The slug that a dataset is filed under: its first known one."""
    return next((slug for slug in categories if slug in CATEGORIES), GENERAL)


def categorise(title: str, tags: Iterable[str], owner: str) -> tuple[str, ...]:
    """Categories of a dataset that comes without any, the best first; `general` when none fits.

    `owner`: names of the organisation, in both languages.
    """
    weighted = [(title, TITLE_WEIGHT), *((tag, TAG_WEIGHT) for tag in tags), (owner, OWNER_WEIGHT)]
    points: dict[str, int] = {}
    for text, weight in weighted:
        words = _words(text)
        for slug, category in CATEGORIES.items():
            if any(word.startswith(category.stems) for word in words):
                points[slug] = points.get(slug, 0) + weight
    ranked = sorted(points, key=lambda slug: (-points[slug], slug))
    best = [slug for slug in ranked if 2 * points[slug] > points[ranked[0]]]
    return tuple(best[:MAX_CATEGORIES]) or (GENERAL,)


def _words(text: str) -> set[str]:
    found: set[str] = set()
    for word in _WORD.findall(text.lower()):
        found |= {word, *(prefix.sub("", word) for prefix in _PREFIXES)}
    return found


# What the columns of a table tell about, by their names in Hebrew and English.
#
# The source labels columns by substrings: `X` is a phone there, `RouteLength` too, and every
# resource carries the labels of its whole dataset. So only words of a name count here.

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NAME_PART = re.compile(r"[^\W_]+(?:\"[^\W_]+)?")
_TRAILING_DIGITS = re.compile(r"\d+$")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


PHONE = _set(
    "phone phones telephone tel telefon mobile cell cellphone cellular fax phonenumber hotline "
    "טלפון טלפונים נייד סלולרי פקס טל טלפקס מוקד"
)
ADDRESS = _set(
    "address addresses adress addr street streets zip zipcode postcode streetname streetcode "
    "כתובת כתובות רחוב רחובות מיקוד מען rehov rechov ktovet"
)
LOCATION = _set(
    "lat lon lng long latitude longitude coordinate coordinates coord coords itm utm wgs84 geo "
    "gps x y xcoord ycoord geom geometry city town settlement locality location locations "
    "district region regions municipality neighborhood neighbourhood county עיר ערים ישוב יישוב "
    'ישובים יישובים מיקום מחוז מחוזות נפה אזור איזור רשות שכונה קואורדינטה קואורדינטות נ"צ נצ '
    "מועצה yishuv ishuv"
)
EMAIL = _set('email emails mail דוא"ל דואל מייל אימייל')
DATE = _set(
    "date dates datetime timestamp year month quarter day yearmonth תאריך תאריכים שנה שנת חודש "
    "רבעון יום מועד תקופה taarich shana shnat hodesh"
)
# Words that make a name speak of something else although one of the above stands in it.
NOT_PHONE = frozenset({"length"})
NOT_EMAIL = frozenset({"box", "רגיל"})
NOT_LOCATION = frozenset({"exposure"})
PAIRS: tuple[tuple[str, frozenset[str]], ...] = (
    ("has_email", frozenset({"דואר", "אלקטרוני"})),
    ("has_email", frozenset({"e", "mail"})),
    ("has_location", frozenset({"קו", "רוחב"})),
    ("has_location", frozenset({"קו", "אורך"})),
)
# Names written together, such as STARTDATE and addressheb. A mandate is not a date.
ENDINGS = (("has_date", "date"), ("has_phone", "phone"), ("has_email", "email"))
BEGINNINGS = (("has_address", "address"), ("has_location", "city"), ("has_email", "email"))
NOT_TOGETHER = ("update", "candidate", "mandate", "validate", "microphone")
# An axis in a short name (X, Y_ITM, long) is anything in a longer one (GovXEventDate, LongName).
AXES = frozenset({"x", "y", "long"})
AXIS_WORDS = 2

_RULES: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = (
    ("has_phone", PHONE, NOT_PHONE),
    ("has_address", ADDRESS, EMAIL),
    ("has_location", LOCATION, NOT_LOCATION),
    ("has_email", EMAIL, NOT_EMAIL),
    ("has_date", DATE, frozenset()),
)


@reading
def flags_of_name(name: str) -> frozenset[str]:
    """The flags that a column called `name` sets."""
    words = _words_of_name(name)
    found = {flag for flag, wanted, other in _RULES if words & wanted and not words & other}
    found |= {flag for flag, pair in PAIRS if pair <= words and not words & NOT_EMAIL}
    for word in words:
        if word.isascii() and not word.endswith(NOT_TOGETHER):
            found |= {flag for flag, end in ENDINGS if word.endswith(end)}
            found |= {flag for flag, start in BEGINNINGS if word.startswith(start)}
    if "has_email" in found and not words & ADDRESS - {"address", "addresses", "כתובת"}:
        found.discard("has_address")  # the address is that of a mailbox
    return frozenset(found)


def flags_of(fields: Iterable[Field]) -> frozenset[str]:
    """The flags that a table with these columns has; a time column is a date by its type."""
    found: set[str] = set()
    for one in fields:
        found |= flags_of_name(one.name)
        if one.type.lower().startswith(("timestamp", "date")):
            found.add("has_date")
    return frozenset(found)


def flags_of_all(resources: Iterable[Resource]) -> frozenset[str]:
    found: set[str] = set()
    for resource in resources:
        found |= flags_of(resource.fields)
    return frozenset(found)


def _words_of_name(name: str) -> frozenset[str]:
    """Lower-case words of a name: `contactPhone_2` is contact, phone; `בכתובת` is כתובת too."""
    plain = [match.group().lower() for match in _NAME_PART.finditer(_CAMEL.sub(" ", name))]
    words: set[str] = set()
    for word in plain:
        words |= {word, _TRAILING_DIGITS.sub("", word)}
        words |= {prefix.sub("", word) for prefix in _PREFIXES}
    axes = frozenset() if len(plain) <= AXIS_WORDS else AXES
    return frozenset(words - {""} - axes)


# The names that people give categories, formats and flags in a filter, as the items spell them.

# How alike two names are before one is offered for the other, 0..1 (difflib's own default).
ALIKE = 0.6
FLAG_PREFIX = "has_"

# Other names of a category, beside its slug and its names in both languages.
_ALIASES: dict[str, tuple[str, ...]] = {
    "communications": ("communication",),
    "culture": ("תרבות", "ספורט", "sport"),
    "demographics": ("demography", "population", "דמוגרפיה", "אוכלוסייה", "אוכלוסיה"),
    "economy": ("economics", "כלכלה"),
    "environment": ("סביבה", "איכות הסביבה", "הגנת הסביבה"),
    "finance": ("budget", "כספים", "אוצר", "פיננסים", "תקציב"),
    "general": ("כללי",),
    "geography": ("maps", "גיאוגרפיה", "גאוגרפיה", "מיפוי"),
    "housing": ("דיור", "שיכון"),
    "immigration": ("עלייה", "עליה", "הגירה", "קליטה"),
    "justice": ("law", "legal", "משפט", "משפטים"),
    "municipal": ("municipalities", "local authorities", "רשויות מקומיות", "עיריות"),
    "religion": ("religious services", "דת", "שירותי דת"),
    "technology": ("science", "טכנולוגיה", "מדע"),
    "tourism": ("תיירות",),
    "transportation": ("transport", "תחבורה"),
    "water": ("מים",),
    "welfare": ("social welfare", "רווחה"),
}


def _key(name: str) -> str:
    return normalize(name).casefold()


_SLUGS: dict[str, str] = {
    _key(name): slug
    for slug, category in CATEGORIES.items()
    for name in (*_ALIASES.get(slug, ()), category.he, category.en, slug)
}


def category_slug(name: str) -> str | None:
    """The slug of a category by its slug or one of its names, in either language."""
    return _SLUGS.get(_key(name))


def nearest_category(name: str) -> str | None:
    """The category that an unknown name most likely means; None when it looks like no other."""
    found = difflib.get_close_matches(_key(name), _SLUGS, n=1, cutoff=ALIKE)
    return _SLUGS[found[0]] if found else None


def format_spellings(name: str) -> tuple[str, ...]:
    """A format as the catalogue spells it, and as memories of a user may."""
    plain = name.strip().lstrip(".")
    return tuple(dict.fromkeys((plain.lower(), plain, plain.upper())))


def flag_spellings(name: str) -> tuple[str, ...]:
    """A flag by its name, with or without the `has_` that the catalogue's flags begin with."""
    plain = name.strip()
    full = FLAG_PREFIX + plain.lower()
    return (plain, full) if full in FLAGS else (plain,)
