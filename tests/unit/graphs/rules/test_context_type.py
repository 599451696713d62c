"""Kinds of work, by whole words of both languages."""

import pytest

from rayapp.graphs.rules.question import CONTEXT_TYPES, context_type_of
from rayapp.text.phrases import tables_of

CASES: dict[str, tuple[str, ...]] = {
    "docker": (
        "my container keeps restarting",
        "docker build fails",
        "My Dockerfile is too large",
        "restart the container after the update",
        "how do I write a docker-compose file",
        "the container exited with code 137",
        "Is podman a replacement?",
        "הדוקר לא עולה",
        "איך בונים דוקרפייל קטן",
        "הקונטיינר נפל בלילה",
        "שלושה קונטיינרים על שרת אחד",
        "קובץ קומפוז לשלושה שירותים",
        "איך מריצים בDocker",
        "מה חדש כשהpodman עולה",
    ),
    "debugging": (
        "the server is not responding",
        "the service keeps timing out",
        "why does nginx return 502",
        "it doesn’t work",
        "האפליקציות נתקעות",
        "המחשב שלי לא עובד",
        "there is an error in the login page",
        "the app crashed again",
        "read this stack trace",
        "the tests are failing since Monday",
        "my printer does not work",
        "help me debug this",
        "יש שגיאה בכניסה לאתר",
        "האפליקציה קורסת",
        "הבדיקות נכשלות",
        "המדפסת לא עובדת",
        "יש באג במסך הראשי",
        "איך לדבג את זה",
        "הסקריפטים לא רצים",
        "הבדיקות לא רצות",
        "הדפים לא נטענים",
        "התמונות לא נטענות",
        "הקבצים לא מתקמפלים",
        "הגרסה לא מתקמפלת",
    ),
    "datagov_query": (
        "find open data about road accidents",
        "which dataset of the ministry has school lists",
        "data.gov.il vehicles",
        "government data on rainfall",
        "what does the Central Bureau of Statistics publish",
        "search CKAN for budgets",
        "מאגר ממשלתי של בתי ספר",
        "נתונים פתוחים על תאונות דרכים",
        "מה יש במאגרי המידע הממשלתיים",
        "הלשכה המרכזית לסטטיסטיקה",
        'לפי נתוני הלמ"ס',
        "נתוני משרד הבריאות על חיסונים",
    ),
    "doc_rag": (
        "summarize this PDF",
        "what does the contract say about notice",
        "look in the document that I sent",
        "chapter 3 of my book",
        "according to the manual, how often?",
        "read the uploaded file",
        "מה כתוב במסמך",
        "סכם את המסמכים ששלחתי",
        "מה נאמר בפרק השני",
        "לפי החוזה, מתי מפנים את הדירה",
        "הקובץ שהעליתי אתמול",
        "עמוד 12 למעלה",
    ),
    "coding_help": (
        "how to parse JSON",
        "write a Python function that sorts names",
        "how do I refactor this",
        "explain async in JavaScript",
        "SQL for the newest row of each group",
        "a regex for phone numbers",
        "review my code",
        "כתוב פונקציה שממיינת שמות",
        "סקריפט בפייתון לגיבוי",
        "הקוד שלי איטי",
        "איך כותבים ביטוי רגולרי לטלפון",
        "שאילתה לשורה האחרונה",
        "לולאה שעוברת על הרשימה",
        "שאלה על הAPI",
    ),
    "web_search": (
        "search the web for cheap flights",
        "look for it on the internet",
        "what are the latest news",
        "weather tomorrow in Haifa",
        "google it please",
        "exchange rate of the dollar",
        "חפש באינטרנט טיסות זולות",
        "מה מזג האוויר מחר",
        "תחפש לי מתכון ברשת",
        "חדשות היום",
        "מה שער הדולר",
        "תגגל את זה",
    ),
    "memory_management": (
        "remember that I am vegetarian",
        "delete all my memories",
        "what do you remember about me",
        "forget what I said about the car",
        "show me the memory bank",
        "do you remember the name of my dog",
        "תזכור שאני צמחוני",
        "מחק את הזיכרונות שלי",
        "אתה זוכר איך קוראים לכלב שלי",
        "תשכח מה שאמרתי על הרכב",
        "תשמור בזיכרון",
        "תעדכני את הזיכרון",
        "מה יש בבנק הזיכרון",
    ),
    "general": (
        "what should I cook tonight",
        "my sister lives in Haifa",
        "the dockyard in Haifa",
        "the airport is closed",
        "a codec for video",
        "the classroom is cold",
        "she described the painting",
        "terror attacks in history",
        "a memory card for the camera",
        "how much memory does the laptop have",
        "rapid growth",
        "מה לבשל הערב",
        "אחותי גרה בחיפה",
        "זה לא נכון",
        "קורס בישול בתל אביב",
        "אני לא עובדת ביום שישי",
        "אנחנו לא עובדים בחגים",
        "המילה גםDocker",
        "המקודש מכולם",
        "דוקרנים בגינה",
        "פרקליט המדינה",
        "הקודם בתור",
        "אזכרה לסבא",
        "שגיאותיהם",
        "",
    ),
}


@pytest.mark.parametrize(
    ("text", "expected"), [(text, name) for name, texts in CASES.items() for text in texts]
)
def test_context_type(text: str, expected: str) -> None:
    assert context_type_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("an error in docker", "docker"),
        ("שגיאה בדוקר", "docker"),
        ("my python code crashed", "debugging"),
        ("הקוד שלי בפייתון קרס", "debugging"),
        ("open data about errors", "datagov_query"),
        ("search the web for a python library", "web_search"),
    ],
)
def test_the_more_specific_rule_wins(text: str, expected: str) -> None:
    assert context_type_of(text) == expected


def test_every_type_but_general_has_one_table() -> None:
    assert sorted(tables_of("work")) == sorted(set(CONTEXT_TYPES) - {"general"})


@pytest.mark.parametrize(
    "text", ["DOCKER build", "ושבדוקר", "\u05d3\u05d5\u05bc\u05e7\u05b6\u05e8", "\u202bהדוקר\u202c"]
)
def test_case_particles_points_and_marks_do_not_matter(text: str) -> None:
    assert context_type_of(text) == "docker"


def test_only_the_beginning_is_read() -> None:
    assert context_type_of("a " * 10_000 + "docker") == "general"
