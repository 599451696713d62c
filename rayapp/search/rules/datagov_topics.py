"""Words by which a question names what public bodies keep data about, in both languages. Pure."""

from __future__ import annotations

import re

# Particles that may be written together with a Hebrew word, up to three of them (ושב).
PARTICLES = "[הבלוכמש]{0,3}"

# Slug of a category -> (English words, Hebrew words); a blank in a phrase matches a hyphen too.
# Words that people use of their own life (money, job, home, travel) are left out on purpose.
TOPICS: dict[str, tuple[str, str]] = {
    "agriculture": (
        r"agricultur\w*|crops?|farms?|farming|farmers?|livestock|orchards?|pesticides?|veterinary",
        r"חקלאות|חקלאי(?:ת|ים|ות)?|גידולים|משקים|בעלי חיים|מטעים|חומרי הדברה|וטרינרי(?:ה|ת|ים)?",
    ),
    "communications": (
        r"cellular (?:antennas?|sites?)|telecom\w*|broadcast\w*|internet coverage",
        r"תקשורת|אנטנות(?: סלולריות)?|פריסת סיבים|מוקדי שידור",
    ),
    "culture": (
        r"museums?|heritage sites?|libraries|archaeolog\w*|sports? (?:facilit\w+|associations?)",
        r"תרבות|מוזיאונים|ספריות(?: ציבוריות)?|ארכיאולוגי(?:ה|ים)|אתרי מורשת|מתקני ספורט"
        r"|אגודות ספורט",
    ),
    "demographics": (
        r"population|census|birth rates?|births|deaths|mortality|baby names|demograph\w*",
        r"אוכלוסיי?ה|אוכלוסין|מפקד|לידות|פטירות|תמותה|ילודה|שמות פרטיים|תושבים|דמוגרפי\w*",
    ),
    "economy": (
        r"compan(?:y|ies) (?:regist\w+)|registered companies|unemployment|imports?|exports?"
        r"|consumer price index|inflation|wages?|industry|manufactur\w+|labou?r market",
        r"חברות (?:רשומות|ציבוריות|ממשלתיות)|רשם החברות|אבטלה|דורשי עבודה|יבוא|ייבוא|יצוא|ייצוא"
        r"|מדד המחירים|אינפלציה|שכר|תעשייה|מפעלים|שוק העבודה",
    ),
    "education": (
        r"schools?|kindergartens?|pupils|teachers|education|matriculation|universit(?:y|ies)"
        r"|higher education|students in",
        r"חינוך|בתי? (?:ה)?ספר|גני (?:ה)?ילדים|תלמידים|מורים|בגרו(?:ת|יות)|אוניברסיטאות|מכללות"
        r"|השכלה גבוהה|סטודנטים",
    ),
    "environment": (
        r"air (?:quality|pollution)|pollut\w+|emissions?|recycl\w+|waste|landfills?|hazardous"
        r"|asbestos|nature reserves?|environment\w*|climate|rainfall|temperatures?",
        r"איכות (?:ה)?(?:אוויר|סביבה)|זיהום(?: (?:ה)?אוויר)?|פליטות|מחזור|מיחזור|פסולת"
        r"|חומרים מסוכנים|אסבסט|שמורות (?:ה)?טבע|הגנת (?:ה)?סביבה|אקלים|משקעים|גשמים"
        r"|טמפרטור(?:ה|ות)",
    ),
    "finance": (
        r"(?:state|government|municipal|public|national) (?:budgets?|spending|expenditure|debt)"
        r"|tax (?:revenues?|benefits?)|exchange rates?|pension funds?|provident funds?|procurement"
        r"|tenders?|insurance companies|interest rates?",
        r"תקציב (?:ה)?מדינה|תקציבי (?:ה)?(?:משרדים|רשויות)|חוב (?:ה)?ציבורי|הכנסות המדינה"
        r"|שערי חליפין|קופות (?:ה)?גמל|קרנות (?:ה)?(?:פנסיה|השתלמות)|רכש ממשלתי|מכרזים"
        r"|חברות (?:ה)?ביטוח|ריבית",
    ),
    "geography": (
        r"maps? of israel|geographic\w*|gis|localities|settlements|coordinates|aerial photos?"
        r"|topograph\w*|street names",
        r"מיפוי|גאוגרפי\w*|גיאוגרפי\w*|ממ\"ג|יישובים|ישובים|קואורדינטות|תצלומי אוויר"
        r"|מפות|שמות (?:ה)?רחובות|גבולות (?:ה)?(?:יישובים|שיפוט)",
    ),
    "health": (
        r"hospitals?|clinics?|pharmac(?:y|ies)|doctors|physicians|nurses|vaccin\w+|infections?"
        r"|medicines|drug registry|public health|health|corona(?:virus)?|covid(?:-19)?|diseases?",
        r"בריאות|בתי? (?:ה)?חולים|קופות (?:ה)?חולים|מרפאות|בתי מרקחת|רופאים|אחיות|חיסונים"
        r"|התחסנות|תחלואה|קורונה|תרופות|מאושפזים|מחלות",
    ),
    "housing": (
        r"housing|construction (?:starts?|sites?)|building permits?|real estate|apartment prices"
        r"|land prices|urban renewal|dwellings",
        r"דיור|התחלות בנ(?:יה|ייה)|היתרי בנ(?:יה|ייה)|נדל\"ן|מחירי (?:ה)?(?:דירות|קרקעות|דיור)"
        r"|התחדשות עירונית|אתרי בנייה|מחיר למשתכן|מקרקעין|תכנון ובנ(?:יה|ייה)",
    ),
    "immigration": (
        r"immigra\w+|olim|aliyah|foreign workers|asylum seekers|border crossings?|refugees",
        r"עולים(?: חדשים)?|עלייה וקליטה|הגירה|עובדים זרים|מבקשי מקלט|מעברי (?:ה)?גבול",
    ),
    "justice": (
        r"court (?:cases|rulings)|courts|crime|offen[cs]es|prisoners|judges|lawyers|nonprofits?"
        r"|non-profits?|legislation|patents?|trademarks?|debtors?",
        r"בתי (?:ה)?משפט|פשיעה|עבירות|אסירים|שופטים|עורכי (?:ה)?דין|עמותות|חקיקה|פטנטים"
        r"|סימני (?:ה)?מסחר|הוצאה לפועל|נוטריונים|מתווכים",
    ),
    "municipal": (
        r"municipal(?:ity|ities)?|local (?:councils?|authorit(?:y|ies))|city council",
        r"רשויות (?:ה)?מקומיות|רשות מקומית|עיריות|מועצות (?:ה)?(?:מקומיות|אזוריות)|ארנונה",
    ),
    "religion": (
        r"synagogues?|kosher|kashrut|burial|cemeter(?:y|ies)|mikva\w*|religious services",
        r"בתי (?:ה)?כנסת|כשרות|שירותי (?:ה)?דת|בתי (?:ה)?(?:עלמין|קברות)|מקוואות|נישואין|גירושין",
    ),
    "technology": (
        r"cyber (?:incidents?|attacks?)|research grants?|science and technology|patents",
        r"מענקי מחקר|מדע וטכנולוגיה|תקיפות סייבר|סייבר",
    ),
    "tourism": (
        r"tourists?|hotels|tourism|guest ?houses|tour guides|overnight stays",
        r"תיירים|תיירות|בתי (?:ה)?מלון|מלונות|לינות|מורי (?:ה)?דרך|צימרים",
    ),
    "transportation": (
        r"vehicles?|cars|trucks|motorcycles|buses|bus (?:stops?|lines?|routes?)|trains?|railways?"
        r"|traffic|road (?:accidents?|safety)|car accidents|public transport\w*|transport\w*"
        r"|garages|driving (?:tests?|schools?)|flights?|airports?|parking lots|gas stations",
        r"רכב|רכבים|כלי (?:ה)?רכב|מכוניות|משאיות|אופנועים|אוטובוסים|רכבות"
        r"|תחנות (?:ה)?(?:אוטובוס|רכבת|דלק)|תחבורה(?: (?:ה)?ציבורית)?|תנועה"
        r"|תאונות(?: (?:ה)?דרכים)?|מוסכים|רישוי (?:ה)?רכב"
        r"|מבחני (?:ה)?נהיגה|מכוני (?:ה)?רישוי|טיסות|שדות (?:ה)?תעופה|חניונים|קווי (?:ה)?אוטובוס",
    ),
    "water": (
        r"water (?:levels?|quality|consumption|sources|wells|supply|reservoirs?)|sewage|wastewater"
        r"|desalinat\w+|kinneret|sea of galilee|springs|streams|wells|rivers|beaches",
        r"מי שתייה|צריכת (?:ה)?מים|איכות (?:ה)?מים|מפלס (?:ה)?(?:כנרת|מים)|קולחים|ביוב|שפכים"
        r"|התפלה|קידוחים|בארות|מעיינות|נחלים|משק המים|חופים|חופי (?:ה)?רחצה|מקורות מים|מים",
    ),
    "welfare": (
        r"welfare|social services|pensioners|disabilit(?:y|ies)|elderly|nursing homes|poverty"
        r"|benefits recipients|day ?care centers?",
        r"רווחה|שירותים חברתיים|קשישים|אזרחים ותיקים|נכים|קצבאות|מקבלי (?:ה)?קצבאות|בתי (?:ה)?אבות"
        r"|עוני|מעונות (?:ה)?יום|ניצולי (?:ה)?שואה|מוגבלויות|ביטוח לאומי",
    ),
}


def words(english: str, hebrew: str) -> str:
    """A pattern of whole words of both languages, without compiling it."""
    latin, letters = english.replace(" ", "[ -]"), hebrew.replace(" ", "[ -]")
    return (
        rf"(?:(?<![\w.])(?:{latin})(?!\w)"
        rf"|(?<![\w\"']){PARTICLES}(?:{letters})(?![\w\"']))"
    )


_BY_SLUG = {slug: re.compile(words(*both), re.IGNORECASE) for slug, both in TOPICS.items()}
ANY_TOPIC = re.compile(
    words(
        "|".join(english for english, _ in TOPICS.values()),
        "|".join(hebrew for _, hebrew in TOPICS.values()),
    ),
    re.IGNORECASE,
)


def topics_of(plain: str) -> tuple[str, ...]:
    """Slugs of the categories that a normalised text names, in the order of the table."""
    return tuple(slug for slug, pattern in _BY_SLUG.items() if pattern.search(plain))
