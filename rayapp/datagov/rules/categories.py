"""The 21 categories of the catalogue in Hebrew and English, and which one a dataset is of. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

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

    Args:
        owner: names of the organisation, in both languages.
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
