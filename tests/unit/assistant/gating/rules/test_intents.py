"""Sentences that fire each intent and sentences that do not, in both languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.assistant.gating.rules.intents import NO_NEEDS, own_name, tool_needs, tool_words

TOOLS = (
    "tavily_search",
    "send_email",
    "get_current_time",
    "mcp__cal__createEvent",
    "datagov_query",
    "search",
    "calculator",
)


@pytest.mark.parametrize(
    "question",
    [
        "Do a deep research on bees",
        "please research the housing market",
        "Can you investigate why prices rose?",
        "I want a literature review about sleep",
        "look into the side effects",
        "עשה מחקר על דבורים",
        "תחקרי את שוק הדיור",
        "אני רוצה לחקור את ההיסטוריה של העיר",
        "ובמחקרי השוק, מה כתוב?",
        "מה אומרים המחקרים על סוכר",
        "תעשה לי סקירה מקיפה על הנושא",
        "כשהמחקר ייגמר תגיד לי מה מצאת",
    ],
)
def test_research_fires(question: str) -> None:
    assert tool_needs(question).research


@pytest.mark.parametrize(
    "question",
    [
        "the researcher moved to Haifa",
        "what does my research say?",
        "she is a research assistant",
        "what was the name of our research group",
        "don't research it, just tell me",
        "no need to investigate",
        "מה המחקר שלי אומר?",
        "איפה מכון המחקר נמצא?",
        "הוא חוקר פרטי",
        "אל תחקור, פשוט תגיד",
        "בלי לחקור לעומק, מה דעתך?",
        "דנה נחקרה",
        "מחקרון",
    ],
)
def test_research_does_not_fire(question: str) -> None:
    assert not tool_needs(question).research


@pytest.mark.parametrize(
    "question",
    [
        "search for cheap flights",
        "Find me a good restaurant",
        "could you look up the opening hours?",
        "חפש מסעדה טובה",
        "תחפשי לי טיסות זולות",
        "אפשר לחפש את זה?",
        "ותחפש גם מלון",
        "מצא לי רופא שיניים",
        "search my memories for the address",
        "חפש בזיכרון את הכתובת",
    ],
)
def test_search_fires(question: str) -> None:
    assert tool_needs(question).search


@pytest.mark.parametrize(
    "question",
    [
        "I was searching for my keys",
        "researching bees",
        "what did you find?",
        "the search engine is slow",
        "he found a job",
        "how does binary search work?",
        "never search for that",
        "אני מחפש עבודה",
        "מה זה מנוע חיפוש?",
        "התחפשנו בפורים",
        "תחפושת של פיראט",
        "אל תחפש את זה",
        "נכון שזה לא נכון?",
    ],
)
def test_search_does_not_fire(question: str) -> None:
    assert not tool_needs(question).search


@pytest.mark.parametrize(
    "question",
    [
        "search the web for the latest release",
        "look for it on the internet",
        "please use the calendar tool",
        "google it",
        "check https://example.com/page",
        "send an email to Dana",
        "use tavily_search",
        "create event tomorrow at five",
        "search for cheap flights",
        "use the calculator tool",
        "חפש באינטרנט מסעדות בחיפה",
        "תחפשי את זה ברשת",
        "תגגל את זה",
        "השתמש בכלי לוח השנה",
        "תפעיל את הכלי send_email",
        "אל תחפש בזיכרון אלא חפש באינטרנט",
        "חפש מסעדה טובה",
        "Why don't you search the web for flights",
        "why don't you look it up online",
        "Why do you not use the calendar tool?",
        "how come you don't google it",
        "why didn't we search for flights",
        "למה שלא תחפש באינטרנט",
        "למה אתה לא מחפש באינטרנט",
        "מדוע את לא מחפשת ברשת?",
        "למה לא תבדקי באינטרנט",
        "למה את לא משתמשת בכלי לוח השנה?",
        "how do I search for it online?",
    ],
)
def test_an_explicit_request_fires(question: str) -> None:
    assert tool_needs(question, TOOLS).explicit is not None


@pytest.mark.parametrize(
    "question",
    [
        "what is my dog's name?",
        "don't search the web, what is my dog's name?",
        "do not use any tool",
        "search my memories for the address",
        "where did I buy shoes on the internet?",
        "what time did we agree on?",
        "the data of the query",
        "she emailed me and sent her regards",
        "how do I search?",
        "מה שם הכלב שלי?",
        "אל תחפש באינטרנט, מי ראש העיר?",
        "please don't search the web",
        "you don't need to look it up online, do not search the web",
        "why? don't search the web",
        "אז לא לחפש באינטרנט",
        "למה? אל תחפש באינטרנט",
        "בלי להשתמש בכלים",
        "חפש בזיכרון שלי את הכתובת",
        "האינטרנט שלי לא עובד",
        "קניתי באינטרנט נעליים",
        "מה גודל הרשת?",
    ],
)
def test_an_explicit_request_does_not_fire(question: str) -> None:
    tools = tuple(tool for tool in TOOLS if tool != "search")
    assert tool_needs(question, tools).explicit is None


@pytest.mark.parametrize(
    "question",
    [
        "what's the weather today?",
        "latest news about the election",
        "What time is it?",
        "what is the current exchange rate",
        "when is Independence Day?",
        "how many days until Passover?",
        "who is the president right now?",
        "my phone needs the latest version of the app",
        "What should I wear today?",
        "do I need a visa now",
        "latest bitcoin price for my wife",
        "Can I get the latest iPhone price?",
        "what can we do in Haifa today?",
        "what is the price of my stock now?",
        "I moved to Haifa last year. What is open today?",
        "מה כדאי לי ללבוש היום?",
        "מה אני צריך ללבוש היום?",
        "האם אני צריך ויזה עכשיו",
        "המחיר האחרון של ביטקוין בשביל אשתי",
        "אני יכול לקבל את מחיר האייפון האחרון?",
        "מה אנחנו יכולים לעשות בחיפה היום?",
        "מה מחיר המניה שלי עכשיו?",
        "עברתי לחיפה בשנה שעברה. מה פתוח היום?",
        "מה מזג האוויר היום?",
        "מה החדשות?",
        "מה השעה?",
        "מה שער הדולר",
        "מתי יום העצמאות?",
        "כמה ימים נשארו עד פסח",
        "מי ראש הממשלה כרגע?",
        "באיזה תאריך נוסדה העיר?",
        "מה הגרסה העדכנית ביותר?",
        "מה חדש בטכנולוגיה?",
    ],
)
def test_a_need_of_the_present_fires(question: str) -> None:
    assert tool_needs(question).current


@pytest.mark.parametrize(
    "question",
    [
        "when is my birthday?",
        "what did we decide today?",
        "when did I move to Haifa?",
        "what is Dana's favourite colour?",
        "how do I know?",
        "when was the day we met?",
        "what have I planned today?",
        "when did my wife and I get married?",
        "what is on my calendar today?",
        "do I have a meeting today?",
        "what price did I pay when we moved this month?",
        "מתי היום שבו נפגשנו?",
        "מה תכננתי היום?",
        "מתי התחתנתי עם אשתי?",
        "מה יש ביומן שלי היום?",
        "האם יש לי פגישה היום?",
        "איזה מחיר שילמתי החודש?",
        "the newspaper of the town",
        "מתי יום ההולדת שלי?",
        "מה החלטנו היום?",
        "מה הצבע האהוב על דנה?",
        "היומן של דנה",
        "לוח השנה העברי",
        "נחדשת",
    ],
)
def test_a_need_of_the_present_does_not_fire(question: str) -> None:
    assert not tool_needs(question).current


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("which datasets are there about hospitals?", True),
        ("אילו מאגרי מידע ממשלתיים יש על בתי חולים?", True),
        ("what is in my database?", False),
        ("הנתונים שלי על הריצה", False),
    ],
)
def test_official_data_is_the_intent_of_open_data(question: str, wanted: bool) -> None:
    assert tool_needs(question).official_data is wanted


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("do research on government datasets about schools", "official_data"),
        ("search and research bees", "research"),
        ("search for bees", "search"),
        ("bees", "general"),
        ("מחקר על מאגרי מידע ממשלתיים", "official_data"),
        ("חפש ועשה מחקר על דבורים", "research"),
        ("חפש דבורים", "search"),
        ("דבורים", "general"),
    ],
)
def test_the_most_specific_intent_gives_the_name(question: str, name: str) -> None:
    assert tool_needs(question).name == name


def test_nothing_is_needed_by_an_empty_question() -> None:
    assert tool_needs("  \u200f ", TOOLS) == NO_NEEDS


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("mcp__mail__sendEmail", ("send", "email")),
        ("get_current_time", ("get", "current", "time")),
        ("server/run-SQLQuery", ("run", "sql", "query")),
        ("כלי_חיפוש", ("כלי", "חיפוש")),
        ("__", ()),
    ],
)
def test_the_words_of_a_tool(tool: str, words: tuple[str, ...]) -> None:
    assert tool_words(tool) == words
    assert own_name(tool)


@given(st.text(max_size=300), st.lists(st.text(max_size=30), max_size=4))
def test_any_question_is_read(question: str, tools: list[str]) -> None:
    found = tool_needs(question, tools)
    assert tool_needs(question, tools) == found


DOERS = {
    "send": "send_email",
    "book": "bookings",
    "schedule": "mcp__cal__scheduleMeeting",
    "create": "creates-file",
    "open": "open_url",
    "buy": "buy_item",
}


@pytest.mark.parametrize(
    ("question", "verb"),
    [
        ("send Dana the picture", "send"),
        ("Can you send it to her?", "send"),
        ("why don't you send it?", "send"),
        ("I would like to book a room for two", "book"),
        ("hello, please schedule lunch with Dana", "schedule"),
        ("let's create a table of it", "create"),
        ("and open the door", "open"),
        ("I need you to buy milk", "buy"),
        ("שלח מייל לדנה", "send"),
        ("תשלחי לה את התמונה", "send"),
        ("אפשר לשלוח לה את זה?", "send"),
        ("למה שלא תשלח לה?", "send"),
        ("למה אתה לא שולח לה?", "send"),
        ("הזמן חדר לשניים", "book"),
        ("אני רוצה להזמין חדר", "book"),
        ("שלום, בבקשה קבעי פגישה עם דנה", "schedule"),
        ("צור טבלה", "create"),
        ("ותפתח את הדלת", "open"),
        ("קנה חלב", "buy"),
    ],
)
def test_a_verb_asks_for_the_tool_that_does_it(question: str, verb: str) -> None:
    tool = DOERS[verb]
    assert tool_needs(question, ("lookup", tool)).explicit == tool
    others = tuple(one for name, one in DOERS.items() if name not in {verb, "create", "book"})
    assert tool_needs(question, others).explicit is None


@pytest.mark.parametrize(
    "question",
    [
        "Dana did send it",
        "the book is open",
        "who will buy it?",
        "don't send it to Dana",
        "he wanted us not to send it",
        "דנה שלחה את זה",
        "הוא שלח לי מכתב",
        "הספר פתוח",
        "מי יקנה את זה?",
        "אל תשלח את זה לדנה",
        "בלי לשלוח כלום",
    ],
)
def test_a_verb_that_is_no_request_asks_for_nothing(question: str) -> None:
    assert tool_needs(question, tuple(DOERS.values())).explicit is None


@pytest.mark.parametrize("tool", ["update_memory", "add_to_memory_bank", "sender", "postbox"])
@pytest.mark.parametrize("question", ["add this to the list, update it", "הוסף את זה ועדכן"])
def test_a_tool_of_memory_or_of_another_verb_is_not_meant(tool: str, question: str) -> None:
    assert tool_needs(question, (tool,)).explicit is None


@pytest.mark.parametrize("tool", [" ", "-", "_", "get_data", "search", "a"])
def test_a_name_of_everyday_words_is_not_asked_for(tool: str) -> None:
    assert tool_needs("can you get data - and a list", (tool,)).explicit is None
