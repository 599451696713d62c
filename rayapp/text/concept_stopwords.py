"""Words that carry meaning in a sentence but name no topic: concepts leave them out.

Stop words of `stopwords` are function words; these are verbs, nouns and adjectives that fit any
topic, and the words of dates. Written by us, normalised spelling; matched as written and as lemma.
"""

from __future__ import annotations

from rayapp.text.stopwords import STOP_WORDS

_ENGLISH = """
    able actually add ago almost already always another anyone anything anyway ask bad bit bring
    came care change check come common correct couple current currently different discuss easy
    else end enough especially etc even ever every everyone everything exactly example explain fact
    far feel find fine first follow found full general generally get give given go goes going gone
    good got great guess hard hear help hello hi hey high hope idea important instead issue item
    keep kind knew know known large last late later least less let like likely list little long
    look lot low made main make many matter may maybe mean mention might mind mine move much must
    need never new next nice nothing number ok okay old one part perhaps place please point
    possible prefer pretty probably problem put quality question quick quickly quite rather read
    ready real really reason recent recently regarding remember remind right said say see seem
    seen sent set several shall short show similar simple simply since small someone something
    sometimes soon sorry sort start started still stuff suggest sure take talk tell thank thanks
    thing think thought time today together told tomorrow tonight took top try turn two type
    understand use used useful user using usual usually various want way well went whatever
    whether whole within without wonder word work works worked working wrong yesterday yet
    three four five six seven eight nine ten hundred thousand million second third day week month
    year hour minute morning evening night weekend date am pm id ids
    detail details fully allow allows include includes contain contains
    monday tuesday wednesday thursday friday saturday sunday january february march april june july
    august september october november december jan feb mar apr jun jul aug sep sept oct nov dec
    favorite favourite love enjoy hate per via vs
"""
# רע, עובד and עבד are what a thing does or is as often as a topic; their other forms stay.
_HEBREW = """
    דבר דברים רוצה רוצים רוצות רצה רציתי לרצות צריך צריכה צריכים צריכות יודע יודעת יודעים לדעת ידע
    ידעתי חושב חושבת חשב חשבתי לחשוב אומר אומרת אומרים אמר אמרה אמרו אמרתי לומר להגיד הגיד הגיע
    הודיע הודיעה מסר מסרה טען טענה הוסיף הוסיפה קבע קבעה כתב כתבה דיווח דיווחה
    יכול יכולה יכולים יכולות אפשר ניתן אפשרי חייב חייבת חייבים מבקש מבקשת בקשה בבקשה תודה סליחה
    שלום היי הי טוב טובה טובים טובות רע רעה נכון נכונה בסדר אוקיי ממש כנראה אולי בערך בדיוק בטח
    עושה עושים לעשות עשה עשתה עשיתי הולך הולכת ללכת הלך בא באה לבוא נותן לתת נתן תן תני לקחת לקח
    לוקח שם לשים משתמש משתמשת להשתמש השתמש שימוש עזרה לעזור עזור עזר מתחיל להתחיל התחיל מוצא למצוא
    מצא מצאתי ראה ראיתי רואה לראות מראה להראות תראה הראה תגיד תגידי תן תני הסבר תסביר להסביר
    הסביר מסביר שואל לשאול שאל שאלתי שאלה שאלות בעיה בעיות עניין ענין נושא משהו מישהו שום כלום
    הכול הכל כולם חלק סוג דרך אופן צורה מקום סיבה דוגמה דוגמא למשל פרט נקודה מספר רשימה סוף התחלה
    גדול גדולה גדולים גדולות קטן קטנה חדש חדשה חדשים חדשות ישן ישנה אחר אחרת אחרים אחרון אחרונה
    אחרונים אחרונות ראשון ראשונה שני שנייה שנית שלישי שלישית רביעי חמישי שישי שביעי קודם קודמת
    הבא הבאה הבאים נוסף נוספת נוספים שונה שונים דומה רב רבים רבות הרבה מעט קצת חשוב חשובה פשוט
    פשוטה קל קלה קשה מהיר מהר לאט שוב תמיד לפעמים פעם פעמים עכשיו כרגע היום אתמול מחר שלשום
    הערב הלילה הבוקר השבוע השנה החודש יום ימים שבוע שבועות חודש חודשים שנה שנים שעה שעות דקה דקות
    בוקר ערב לילה תאריך זמן אחד אחת שתיים שניים שלוש שלושה ארבע ארבעה חמש חמישה שש שישה שבע שבעה
    שמונה תשע תשעה עשר עשרה מאה אלף מיליון
    ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר
    אוהב אוהבת לאהוב אהב מעדיף מעדיפה להעדיף העדיף זוכר זוכרת לזכור זכר תזכור תזכיר זוכרים
    מדבר לדבר דיבר מבין להבין הבין נראה כלומר בעצם עצמו עצמה עצמי לבד ביחד יחד דווקא עדיין אפילו
    הינו הינה הנה עובד עובדת עבד קיים קיימת נמצא נמצאת אחראי הביתה החוצה פנימה משתנה
    לכן לפיכך אמור אמורה כדאי רגיל רגילה כללי כללית מיוחד עיקרי עיקרית נוכחי נוכחית אלינו אליו
    אליה אליי אליך ממני ממנו ממנה ממך עליו עליה עלי עליי עליך איתי איתו איתה איתך איתנו אצלי אצלו
    אצלנו מאז מאוחר מוקדם האחת ההוא ההיא ההם הזה הזאת הזו האלה האלו הללו
"""
CONCEPT_STOP_WORDS = STOP_WORDS | frozenset(_ENGLISH.split()) | frozenset(_HEBREW.split())
# Words that open a request: capital letters there name nothing ("Deploy Kubernetes").
_OPENERS = """
    add ask avoid build call change check clear close configure connect convert create debug delete
    deploy disable download edit enable explain export find fix generate get give help import
    improve install keep list load make migrate move open optimize prefer query read remember
    remind remove rename replace restart run save search send set setup show start stop summarize
    tell test translate try update upgrade upload use using write dear hello hi hey thanks please
    good also yes no ok okay today tomorrow yesterday last next every
"""
OPENERS = frozenset(_OPENERS.split())
# After a Hebrew noun these describe it: "במשרד הגדול" is no construct pair.
_ADJECTIVES = """
    הישראלי הישראלית הציבורי הציבורית הלאומי הלאומית המקומי המקומית הפרטי הפרטית הטוב הטובה
    הגדול הגדולה הגדולים הגדולות הקטן הקטנה הקטנים החדש החדשה החדשים החדשות הישן הישנה הישנים
    הראשון הראשונה השני השנייה השלישי השלישית האחרון האחרונה הקודם הקודמת הנוכחי הנוכחית
    החשוב החשובה הנכון הנכונה האחר האחרת הבא הבאה הראשי הראשית המרכזי המרכזית העיקרי העיקרית
    הצפוני הדרומי המזרחי המערבי הלבן השחור האדום הכחול הירוק היפה הארוך הקצר הגבוה הנמוך
"""
HEBREW_ADJECTIVES = frozenset(_ADJECTIVES.split())
