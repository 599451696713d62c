"""Which questions ask for open government data, sentence by sentence in both languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.datagov.rules.categories import CATEGORIES
from rayapp.search.rules.datagov_intent import datagov_intent, topics_of
from rayapp.text.normalize import normalize
from rayapp.text.phrases import tables_of

WANTED: list[tuple[str, str]] = [
    # a source by its name
    ("what is on data.gov.il about electric vehicles", "named_source"),
    ("is there a CKAN resource with parking lots", "named_source"),
    ("Find government data about hospitals", "named_source"),
    ("which open government portal publishes budgets", "named_source"),
    ("load the government data sets into pandas", "named_source"),
    ("Where can I find governmental open data?", "named_source"),
    ("מה יש ב-data.gov על בתי חולים", "named_source"),
    ("תמצא לי נתונים ממשלתיים על תחבורה", "named_source"),
    ("מה אפשר למצוא במאגרים הממשלתיים", "named_source"),
    ("אילו מאגרי מידע ממשלתיים עוסקים בחינוך?", "named_source"),
    ("יש משהו בדאטה גוב על רכבים חשמליים?", "named_source"),
    ('מה אומרים נתוני הלמ"ס על ילודה', "named_source"),
    ("נתוני הלשכה המרכזית לסטטיסטיקה על שכר", "named_source"),
    ("להוריד מידע ממשלתי ל-python", "named_source"),
    # public data
    ("is there open data about bus routes", "public_data"),
    ("public statistics on unemployment", "public_data"),
    ("datasets from the ministry about recycling", "public_data"),
    ("municipal data about waste collection", "public_data"),
    ("CBS figures for 2023", "public_data"),
    ("official information on pension funds", "public_data"),
    ("איפה אפשר למצוא נתונים פתוחים על זיהום אוויר", "public_data"),
    ("מאגר ציבורי של מוסכים", "public_data"),
    ("מידע רשמי על קופות גמל", "public_data"),
    ("יש מידע סטטיסטי על עולים חדשים?", "public_data"),
    ("נתונים ציבוריים בנושא מים", "public_data"),
    # the data of a public body
    ("What data does the Ministry of Health publish?", "data_of_a_body"),
    ("records of the Tax Authority about imports", "data_of_a_body"),
    ("statistics from the Bank of Israel on exchange rates", "data_of_a_body"),
    ("list of permits by the Water Authority", "data_of_a_body"),
    ("figures of the National Insurance Institute", "data_of_a_body"),
    ("נתוני משרד הבריאות על חיסונים", "public_data"),
    ("אילו נתונים מפרסם משרד התחבורה?", "data_of_a_body"),
    ("קובצי הנתונים של רשות המסים", "data_of_a_body"),
    ("רשימת המכרזים של משרד האוצר", "data_of_a_body"),
    ("סטטיסטיקות של משטרת ישראל על עבירות", "data_of_a_body"),
    ("נתונים מעיריית חיפה", "data_of_a_body"),
    ("מרשם העמותות של רשם העמותות", "data_of_a_body"),
    # datasets
    ("Which datasets have phone numbers?", "datasets"),
    ("are there any datasets about schools", "datasets"),
    ("show me data sets on water quality", "datasets"),
    ("dataset of road accidents", "datasets"),
    ("find a dataset with addresses of clinics in my city", "datasets"),
    ("אילו מאגרים קיימים על תאונות דרכים", "datasets"),
    ("באיזה מאגר מידע יש כתובות של בתי ספר", "datasets"),
    ("חפש מאגרי נתונים על איכות מים", "datasets"),
    ("מאגרי רכב", "datasets"),
    ("מאגרי בתי החולים", "datasets"),
    ("רשימת מאגרי הרווחה", "datasets"),
    ("ובמאגרי התחבורה מה יש על אוטובוסים?", "datasets"),
    ("אני מחפשת דאטהסט על מחירי דירות", "datasets"),
    ("מחפש דאטהסט על מחירי דירות", "datasets"),
    # data on a topic
    ("where can I find data about air pollution", "data_on_a_topic"),
    ("statistics on car accidents", "data_on_a_topic"),
    ("data on rainfall in the north", "data_on_a_topic"),
    ("registry of foreign workers", "data_on_a_topic"),
    ("traffic figures for railways", "data_on_a_topic"),
    ("I am looking for data on housing", "data_on_a_topic"),
    ("where can I get statistics about tourists?", "data_on_a_topic"),
    ("אני צריך נתונים על תיירים", "data_on_a_topic"),
    ("is there data about air quality in my neighbourhood", "data_on_a_topic"),
    ("איפה אפשר למצוא נתונים על זיהום אוויר?", "data_on_a_topic"),
    ("היכן ניתן לקבל נתונים על בתי כנסת", "data_on_a_topic"),
    ("נתוני תחבורה ציבורית", "data_on_a_topic"),
    ("נתוני הכנרת: מפלס המים", "data_on_a_topic"),
    ("נְתוּנִים עַל בָּתֵּי סֵפֶר", "data_on_a_topic"),
    ("סטטיסטיקה של תאונות", "data_on_a_topic"),
    ("נתונים על איכות האוויר באזור שלי", "data_on_a_topic"),
    ("מרשם כלי הרכב", "data_on_a_topic"),
    ("פנקס המתווכים", "data_on_a_topic"),
    ("ומה לגבי נתונים על קשישים ונכים", "data_on_a_topic"),
    # a figure for every part
    ("unemployment in every town", "breakdown"),
    ("number of synagogues by city", "breakdown"),
    ("pupils per district", "breakdown"),
    ("אבטלה בכל יישוב", "breakdown"),
    ("מספר התלמידים לפי מחוז", "breakdown"),
    # how many, and lists
    ("how many electric vehicles are there in Israel", "count"),
    ("How many hospitals are there in Tel Aviv?", "count"),
    ("number of synagogues by year", "count"),
    ("the total number of pupils in Israel", "count"),
    ("כמה רכבים חשמליים יש בישראל?", "count"),
    ("כמה בתי ספר יש בתל אביב", "count"),
    ("כמה מוסכים פועלים בארץ", "count"),
    ("מספר התלמידים לפי שנה", "count"),
    ("list of licensed garages", "list"),
    ("list of all the hospitals in Israel", "list"),
    ("רשימת בתי החולים בישראל", "list"),
    ("רשימת המוסכים המורשים", "list"),
    ("רשימת חופי הרחצה המוכרים", "list"),
]

UNWANTED: list[str] = [
    # own data, earlier conversations
    "where is my data",
    "delete all my health data",
    "what did I tell you about the government data project",
    "do you remember the datasets we talked about",
    "remind me which open data portal I liked",
    "our data about water consumption",
    "show me the data I uploaded about schools",
    "my list of hospitals in Israel",
    "what records about me do you keep",
    "did we discuss statistics on traffic",
    "the lists of cars that I made",
    "הנתונים שלי",
    "איפה הנתונים שלי על בריאות",
    "תמחק את כל המידע שלי",
    "רשימת הקניות שלי",
    "מה אמרתי לך על נתונים ממשלתיים",
    "אתה זוכר את מאגרי המידע שדיברנו עליהם",
    "הנתונים שאספתי על תאונות",
    "תזכיר לי איזה מאגר ממשלתי בדקנו",
    "מאגר הלקוחות שלנו",
    "מידע אישי על קצבאות",
    "כמה ספרים קראתי אני בישראל",
    # programs and models
    "database of my app",
    "how do I query a database with python data",
    "which datasets are best for training a language model",
    "the schema of the vehicles table in SQL",
    "dataset for machine learning on traffic",
    "pandas data frame of car accidents",
    "what data structures does the server use for schools",
    "mobile data plan for travel",
    "public data members of a C++ class",
    "personal data protection in hospitals",
    "בסיס הנתונים של האפליקציה",
    "איך לאמן מודל על מאגרי מידע של תחבורה",
    "מבנה נתונים לייצוג רכבות",
    "מדעי הנתונים בתעשייה",
    "שאילתה על נתוני התלמידים בשרת",
    "מאגר הגז לוויתן",
    "מה יש במאגרי הנפט",
    "חבילת נתונים סלולריים",
    # everyday life
    "how many times was I in Israel",
    "how many cars do I have",
    "how many days did Dana spend in Israel",
    "how many kids does Melanie have",
    "number of guests at the wedding",
    "list of my favourite museums",
    "a list of books to read",
    "shopping list for the weekend",
    "what is the date of the meeting",
    "Where does Dana live?",
    "which school does Noa go to",
    "the doctor at the hospital was kind",
    "what data did Grid4C use",
    "How long is the bus ride to Haifa?",
    "כמה זמן לוקחת הנסיעה לחיפה",
    "כמה עולה כרטיס לרכבת",
    "כמה ילדים יש לדנה",
    "כמה פעמים הייתי בארץ",
    "בכמה ערים בישראל פועלת Via?",
    "רשימת כחול לבן לבחירות",
    "מקום שישי ברשימת הליכוד",
    "על סמך מידע מכמה יבשות מבססת Grid4C את הנתונים שלה?",
    "כמה זמן פייסבוק נתונה באיום?",
    "מי רצה להסתיר את הסכנות שבמאגר?",
    "באיזה תחום מתעסק משרד הפנים?",
    "איפה גרה דנה",
    "sort my museums by city",
    "בכל עיר יש לי חברים",
    "איזה בית ספר הילדים אוהבים",
    "מתי התור לרופא בבית החולים",
    "המצב נתון להחלטתך",
    "",
    "?",
]


@pytest.mark.parametrize(("text", "reason"), WANTED)
def test_a_question_about_open_data_is_known(text: str, reason: str) -> None:
    found = datagov_intent(normalize(text))
    assert (found.wanted, found.reason) == (True, reason), text


@pytest.mark.parametrize("text", UNWANTED)
def test_any_other_question_is_left_alone(text: str) -> None:
    found = datagov_intent(normalize(text))
    assert not found.wanted, (text, found)
    assert found.categories == ()


def test_the_table_holds_both_languages_alike() -> None:
    for texts in ([text for text, _ in WANTED], UNWANTED):
        hebrew = sum(any("א" <= c <= "ת" for c in text) for text in texts)
        assert 0.35 < hebrew / len(texts) < 0.65


OBJECTIONS = [
    ("where is my data", "own_data"),
    ("הנתונים שלי", "own_data"),
    ("dataset for machine learning", "technical"),
    ("מבנה נתונים", "technical"),
    ("where does Dana live", ""),
]


@pytest.mark.parametrize(("text", "reason"), OBJECTIONS)
def test_a_no_says_why(text: str, reason: str) -> None:
    assert datagov_intent(normalize(text)).reason == reason


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("datasets about hospitals", "health"),
        ("נתונים על בתי ספר", "education"),
        ("open data on buses", "transportation"),
        ("מאגרי מידע על עמותות", "justice"),
        ("open data", None),
    ],
)
def test_topics_become_categories(text: str, slug: str | None) -> None:
    found = datagov_intent(normalize(text)).categories
    assert (slug in found) if slug else found == ()


def test_every_topic_is_a_category() -> None:
    assert set(tables_of("topics")) == set(CATEGORIES) - {"general"}


@pytest.mark.parametrize("prefix", ["", "ה", "ב", "ל", "ו", "וב", "שב", "מה", "כשה"])
def test_hebrew_particles_change_nothing(prefix: str) -> None:
    assert datagov_intent(f"מה יש {prefix}מאגרי מידע ממשלתיים").wanted
    assert "transportation" in topics_of(f"{prefix}תחבורה")


@pytest.mark.parametrize(
    "text", ["opendatabase", "metadata.government", "מאגרית נתוניה", "dataset-x"]
)
def test_a_part_of_a_word_counts_for_nothing(text: str) -> None:
    assert not datagov_intent(text).wanted


@given(st.text(max_size=300))
def test_any_text_gets_an_answer_and_always_the_same(text: str) -> None:
    found = datagov_intent(normalize(text))
    assert found == datagov_intent(normalize(text))
    assert found.wanted or found.categories == ()
    assert set(found.categories) <= set(CATEGORIES)


def test_a_long_text_is_read_at_its_beginning_only() -> None:
    assert not datagov_intent("tea " * 1_000 + "open data").wanted
