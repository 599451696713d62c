"""Which answers of a model are none."""

import pytest

from rayapp.index.rules.prefix import accepted_prefix
from rayapp.inference.chat.rules.answers import faithful, refuses
from tests.support.builders import an_item

REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "Sorry, no.",
    "I cannot place this text.",
    "I can’t do that.",
    "I am unable to say.",
    "We are not able to say where it is from.",
    "Unfortunately I know nothing of it.",
    "My apologies, there is nothing to say.",
    "As an AI language model, I have no access to it.",
    "As a helpful assistant I do not answer this.",
    "אני מצטער, איני יכול לעזור בכך.",
    "מצטערת, אין לי מה לומר.",
    "לצערי אין לי מידע.",
    "סליחה, אבל אין לי תשובה.",
    "לא אוכל לעזור בזה.",
    "אינני מסוגלת לענות.",
    "אין באפשרותי לענות.",
    "כמודל שפה, אין לי גישה לכך.",
    "Unfortunately, we cannot say more.",
    "Unfortunately there is not enough information.",
    "As an AI assistant, this is not something to comment on.",
    "As an assistant, I can't say.",
    "I apologize for the inconvenience.",
    "I will not answer that.",
    "I don't have enough information to place this text.",
    "I do not have access to the context.",
    "I don't know where this text comes from.",
    "There is not enough context to situate the text.",
    "There isn't sufficient information here.",
    "No context was given.",
    "No additional information is available.",
    "Not enough information.",
    "Insufficient context.",
    "The provided text does not contain enough context.",
    "The context of this text cannot be determined.",
    "It is not possible to determine the context.",
    "It is unclear where this text comes from.",
    "N/A",
    "n/a.",
    "None.",
    "Unknown",
    "No context.",
    "לצערי לא ניתן לקבוע מאיפה הטקסט.",
    "לצערי הרב אין מספיק מידע.",
    "לא אוכל לענות על כך.",
    "אני לא יכול לומר.",
    "כעוזרת דיגיטלית, אין לי גישה לשיחות.",
    "כעוזר אישי איני יודע מאיפה הטקסט.",
    "אין לי מספיק מידע כדי למקם את הטקסט.",
    "אין לי גישה להקשר.",
    "אין מספיק הקשר.",
    "אין די מידע כדי לדעת.",
    "לא ניתן לקבוע את ההקשר של הטקסט.",
    "לא ניתן לדעת מאיפה הטקסט.",
    "אי אפשר לקבוע מאיפה הטקסט.",
    "אני לא יודע מאיפה הטקסט הזה.",
    "אינני יודעת מה ההקשר.",
    "לא נמסר הקשר.",
    "לא סופק מידע נוסף.",
    "הטקסט אינו מכיל מספיק הקשר.",
    "לא ידוע",
    "אין הקשר.",
]
ANSWERS = [
    "From a talk about the harbour of Jaffa.",
    "Dana says that she is sorry.",
    "A talk about apologies.",
    "As a child Dana lived in Haifa.",
    "Assistance for the elderly in Haifa.",
    "Can't Stop: a board game of Dana's.",
    "I, Claudius: notes on a book.",
    "We can see 20 stops.",
    "מתוך שיחה על נמל יפו.",
    "דנה מצטערת על האיחור.",
    "כמודל ראשון נבחרה חיפה.",
    "כעוזר שר האוצר הוא עבד בירושלים.",
    "לא ניתן היה להגיע לחיפה.",
    "אני לאה, מורה מחיפה.",
    "As a research assistant, Dana worked at the Technion.",
    "As an assistant professor Dana teaches in Haifa.",
    "As a teaching assistant I met Noa: a diary of Dana's.",
    "Apologies from the landlord about the noise.",
    "We will not meet on Sunday: the plan of the team.",
    "I can't sleep: a diary entry about insomnia.",
    "Unfortunately we missed the ferry: the trip to Acre.",
    "Sorry, a film by Ken Loach, seen with Noa.",
    "No context switches: notes on a scheduler.",
    "None of the trains ran on Sunday.",
    "Unknown soldier: a visit to the memorial.",
    "There is not enough parking in Haifa, says Dana.",
    "I don't have a car: Dana's reasons.",
    "I don't know Noa: from a talk about the class.",
    "I do not have access to the parking lot: Dana's letter.",
    "No information desk at the station: the trip to Acre.",
    "The text message of the landlord about the noise.",
    "לא אוכל בשר מאז ילדותו, לפי שיחה על התזונה.",
    "לא אוכל גלוטן: הרגלי האכילה של המשתמש.",
    'כעוזרת אישית של מנכ"ל דנה עבדה בחיפה.',
    "לצערי הרב איחרנו למעבורת: יומן הטיול לעכו.",
    "אני לא יכולה לישון: יומן של דנה.",
    "אין מספיק חניה בחיפה, לפי דנה.",
    "אין לי מכונית: הסיבות של דנה.",
    "אני לא יודע לשחות: שיחה על הים.",
    "לא ניתן לקבוע תור לרופא בשבת, לפי המרפאה.",
    "לא נמסר המפתח לדייר: שיחה על הדירה.",
    "לא ידוע מי גנב את האופניים: שיחה עם המשטרה.",
    "אין הקשר לתאונה: שיחה על הביטוח.",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_neither_prefix_nor_summary(text: str) -> None:
    hebrew = any("א" <= letter <= "ת" for letter in text)
    told = "הוא פתוח בימי ראשון " * 60 if hebrew else "It is open on Sundays " * 60
    assert refuses(f"  {text}")
    assert accepted_prefix(text, an_item(text=told)) == ""
    assert faithful(text, told, most=1_000) is None


@pytest.mark.parametrize("text", ANSWERS)
def test_what_speaks_of_somebody_is_an_answer(text: str) -> None:
    assert not refuses(text)


def test_a_long_answer_is_looked_through_in_no_time() -> None:
    for start in ("I don't have enough ", "The provided text ", "אין לי מספיק ", "לצערי "):
        assert refuses(start + "a " * 50_000) in (True, False)
