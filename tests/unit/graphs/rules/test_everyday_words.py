"""Words that everyday life has too: they say a kind of work only beside a word of that work."""

import pytest

from rayapp.graphs.rules.question import context_type_of

EVERYDAY = """
אני לא עובדת ביום שישי
אמא שלי לא עובדת בקיץ
הבן שלי לא עובד השבוע
למה דנה לא עובדת היום?
אנחנו לא עובדים בחגים
הלב שלי שבור
נשבר לי הלב והוא עדיין שבור
הוא נכשל במבחן הנהיגה
היא נכשלה בבגרות במתמטיקה
האוטובוס נתקע בפקק
המשא ומתן נתקע
החופשה הייתה כישלון
השוק קרס בשנת 2008
היא קרסה מעייפות אחרי המרתון
זה לא עולה הרבה כסף
הוא לא רץ מרתונים כבר שנה
היא לא מגיבה להודעות שלי
יש לי שגיאות כתיב בחיבור
קניתי מחרוזת לסבתא
מחרוזת הפנינים שלה יפה
המחרוזות בשוק יקרות
הפרק האחרון של הסדרה
ראיתי שני פרקים אתמול בערב
נפתח פרק חדש בחיים שלי
הספר שלי על המדף
איבדתי את הספר הזה ברכבת
קניתי חוברת עבודה לבן שלי
קוד הכניסה לבניין הוא 4512
מה קוד הלבוש בחתונה?
אחותי מתכנתת בחברה גדולה
אני עושה לולאה בחוט סריגה
האינטרנט בבית איטי
קניתי נעליים באינטרנט
אחי עובד בגוגל
מזג האוויר בטיול היה נפלא
יש לי זיכרונות טובים מהילדות
קשה לי לזכור שמות
אי אפשר לשכוח את הטיול ליפן
הקונטיינר הגיע לנמל אשדוד
שכרנו קונטיינר לרהיטים
I got stuck in traffic
We are stuck at the airport
My heart is broken
He has a broken leg
My brother failed his driving test
The marriage failed after two years
She was in a car crash last year
The stock market crashed in 1929
It was a human error
A bug bit me on the arm
There are bugs in the garden
With one exception, everybody came
My daughter doesn't work on Fridays
The kid is in time out
The lake freezes in winter
We watched the last chapter of the series
A new chapter in my life begins
I am attached to my dog
My contract ends in May
I left this book on the train
The dress code is casual
The gate code is 4512
My sister is a programmer
We saw a python at the zoo
I drink java every morning
The actor lost his script
Her liver function is normal
The weather was lovely on our trip
My cousin has a website about cakes
I have fond memories of my childhood
I remember that summer in Rome
I will never forget that day
She can't remember my birthday
The shipping container stopped at the port
A plastic container for the soup
The interior decorator was late
השעון של סבא שבור
הילדה נתקעה בעץ
נתקענו במעלית חצי שעה
הממשלה קרסה אחרי חודש
בעלי לא עובד כבר שנה
המחשב במשרד חדש ואני לא עובדת שם
העסק של אבא נכשל
לפי דעתי הטיול היה כישלון
הוא קנה מחרוזת חרוזים
צפיתי בפרק של חברים
בפרק הזמן הזה גרתי בלונדון
שכחתי את קוד הכספת
אח שלי מתכנת וגר בברלין
הלולאות של הנעליים נפתחו
הזמנתי פיצה אונליין
מזג האוויר בחופשה היה גרוע
אני זוכרת את סבתא מבשלת
הילדים מנקים את הקונטיינר ליד הבית
היא לא תשכח את היום הזה
חיפשתי קוד קופון להנחה
the bus got stuck in the snow
his business failed last summer
my grandmother's vase is broken
the plane crashed in the mountains
mom doesn't work on Sundays
he stopped working at the bank
my toe is broken and it hurts
the talks failed again
the children are stuck at home
I read a chapter before bed
my brother wrote a book about birds
these books are for the school library
the postal code of Haifa
she learned her script by heart
java is an island in Indonesia
the weather ruined the wedding
he has many memories of the war
we never forget what you did
a container of yogurt
the exception proves the rule
המצור על העיר נמשך שנה
הכיסא במטבח שבור
הרכבת נתקעה בין התחנות
הדיאטה שלי נכשלה שוב
סבתא לא עובדת מאז הפנסיה
הגשר קרס בסערה
השכן לא מגיב כשדופקים בדלת
מחרוזת זהב ליום הולדת
פרק מרגש בהיסטוריה של העיר
הקוד של השער התחלף
קראתי ספר על כלבים
יש לי זיכרונות מהצבא
the elevator got stuck between floors
the crops failed this year
my tooth is broken
she doesn't work weekends
the ice cream machine at the beach is closed
our book club meets on Monday
my favorite chapter of the novel
the secret code of the club
הצמיד שקיבלתי ממך שבור
הפגישה נתקעה בגלל הגשם
המרק יצא כישלון
הוא נכשל בראיון העבודה
קיר הגדר קרס אתמול
ענדתי מחרוזת כחולה
הפרק של היום היה מצחיק
שכחתי את הקוד של המזוודה
הזיכרונות מהחתונה מתוקים
my window is broken
the negotiations got stuck
her plan failed miserably
my wife is not working this summer
the roof crashed down
what a lovely chapter of my life
the code word was banana
I lost my favorite book
the weather made us sad
they never remember me
המזוודה שלי הגיעה שבורה
נתקענו בלי דלק
הניסיון לסלוח נכשל
סיום פרק א של השנה
היא לבשה מחרוזת פנינים
קוד הטלפון של חיפה הוא 04
הזיכרונות האלה קשים לי
my glasses are broken
the truck got stuck in the mud
the cake failed to rise
my uncle does not work on Saturdays
a sad chapter in our history
the area code is 212
ants and bugs all over the kitchen
he wrote the script of the movie
stormy weather on our hike
I remember my first kiss
the contractor left a container in the yard
we bought this book together
לצאת לרחוב כדי לזכור שמחות
"""
GENUINE = {
    "debugging": """
the server is not responding
why does nginx return 502
getting permission denied error
I get a null pointer exception
kafka consumer is stuck
service keeps timing out
המחשב נתקע כל הזמן
למה לא עובד לי הווטסאפ
עדכן אותי, עדיין יש שגיאה באתר
התוכנית בפייתון נכשלת
הטלוויזיה לא עובדת
הכפתור של השליחה שבור
excel crashes when I open the file
the search feature is broken
my vacuum robot isn't working
found a bug in the payment flow
the video freezes after a minute
הטלפון נתקע ולא נדלק
הרובוט שואב לא עובד
האוזניות לא עובדות בצד ימין
העדכון נכשל באמצע
הסמארטפון שבור מה עושים
למה הוידאו נתקע כל דקה
קריסה של האפליקציה בהתחברות
המדפסת נתקעת על דף ראשון
the blender is not working
my headphones stopped working
the update failed halfway
my tablet is stuck on the logo
the touchpad doesn't work
why does chrome crash all the time
there is a weird bug in the checkout
the unit tests are broken
המטען לא עובד
הבילד נכשל שוב
האפליקציה נתקעה לי
למה הקוד שלי לא עובד
המיקרופון לא עובד
הבלוטות' לא מתחבר, יש תקלה
the microphone is not working
my game keeps crashing
zoom crashes when I share my screen
האפליקציה נתקעת כשאני פותחת אותה
המחשב שלי נתקע
המסך של הטלפון שבור
ההתקנה נכשלה עם הודעה מוזרה
הbuild נכשל
למה ה-API לא עובד?
למה לא עובדת לי המדפסת?
השרת קרס בלילה
האתר לא עולה
זה לא עובד
שום דבר לא עובד
קיבלתי שגיאה מוזרה
מה המשמעות של השגיאה הזאת?
הודעת שגיאה 404
יש תקלה בשרת
מכונת הכביסה לא עובדת
הקוד שכתבתי לא רץ
התוכנה לא מגיבה
המערכת קרסה
האינטרנט לא עובד
the app is stuck on the loading screen
my laptop freezes every morning
the request timed out
the build failed on the server
I get an error when I log in
what does this error message mean?
there is a bug in my code
how do I fix this bug
it doesn't work
nothing works since the update, it is broken
why is my printer not working?
the link on the website is broken
the tests fail on Windows
an exception in thread main
the page does not load
my phone won't start
המסך של הלפטופ נתקע על לוגו
הטלפון שלי לא מגיב
יש באג בטופס ההרשמה
הסקריפט נכשל בשורה 10
הפריסה נכשלה בשרת הבדיקות
האפליקציה שלי קורסת בפתיחה
למה השרת לא עולה אחרי העדכון
הקובץ לא נפתח, קיבלתי שגיאה
הבדיקה נכשלת כל פעם
הראוטר שבור
why does my app crash on startup
the database connection fails
npm install is stuck
my car's engine won't start
pip install failed with an error
the API returns an error 500
TypeError: cannot read property, how do I debug it
the login button is broken
my code doesn’t work
the deployment keeps failing
my printer doesn’t work
""",
    "doc_rag": """
סכם את הפרק הראשון
explain chapter five of the book
תסכם לי את הפרק על אנרגיה
מה כתוב בספר על נמלים
summarize this article
what does the manual say about cleaning
מה המסקנה של הפרק הרביעי בספר
what is the book about
in which chapter is entropy defined
סכמי לי את הפרק השלישי
מה כתוב בפרק 5?
על מה מדבר הפרק הראשון בספר?
מה הספר אומר על שינה?
מה כתוב בחוברת ההדרכה
תסביר לי את פרק 4
במסמך המצורף יש טבלה
which chapter explains recursion?
summarize the second chapter
what does this book say about sleep
see the attached file
find the clause in my contract
על מה הפרק האחרון בספר
מה כתוב בפרק המבוא
what does chapter two say
summarize my contract
find it in the attached file
""",
    "coding_help": """
how to parse JSON in Java
קוד שמוצא מספרים ראשוניים
מה זה מחרוזת בתכנות
optimize this function
a python script to rename photos
תכתבי לי קוד שמחשב ממוצע
איך הופכים מחרוזת למספר
לולאה שרצה על רשימה
write code for a calculator
what does this script do
how do I call a function with two arguments
קוד לחישוב ממוצע
איך בודקים אם מחרוזת ריקה
how do I reverse a string in c#
code for a binary tree
איך הופכים מחרוזת בפייתון?
איך מחפשים תת-מחרוזת במחרוזת בקוד
פונקציה שמקבלת מחרוזת ומחזירה מספר
תסבירי לי את הקוד הזה
תכתוב לי קוד שממיין רשימה
הקוד רץ לאט, איך לשפר?
אני מתכנתת, תעזרי לי עם הפונקציה
לולאה אינסופית בסקריפט
explain this code to me
write a script that renames files
how do I concatenate strings in Java
a function that returns the sum
how do I call this function from python
my script in bash is slow
כתבי לי קוד בשפת סי
איך מפצלים מחרוזת לפי פסיק
מה ההבדל בין מחרוזת למערך
איך עושים לולאה על מילון בפייתון
review this function please
how do I write a script for backups
what is a decorator in python
""",
    "web_search": """
תמצא באינטרנט מספר טלפון של העירייה
how's the weather
חפשי לי באינטרנט מתכון
מה יהיה מזג האוויר בשבת
what will the weather be on Sunday
מה אומרים באינטרנט על המלון
weather in Paris tomorrow
תבדקי באינטרנט מתי המוזיאון פתוח
תחפש בגוגל מסעדות בחיפה
מה מזג האוויר בסוף השבוע?
יהיה גשם? מזג האוויר למחר
מצאי לי אונליין נעליים
what's the weather like in Rome?
find me a website with recipes
check online when the museum opens
תבדוק באינטרנט כמה עולה טיסה
מזג האוויר מחר בתל אביב
how is the weather today
which website sells cheap flights
""",
    "memory_management": """
עדכן את הזיכרון שלי
remember to call me Danny
אל תשכחי שאני צמחונית
תמחק מהזיכרון את הכתובת
please forget what I said
remember that my son is allergic
תזכרי שאני לא אוכלת בשר
remember my wife's name is Noa
תזכרי שאני אלרגית לבוטנים
תוכל לזכור את זה בשבילי?
תעדכני את הזיכרון: עברתי לחיפה
תשכחי את כל מה שסיפרתי
הראי לי את הזיכרונות שלי
אילו זיכרונות יש לך עליי?
please remember my birthday
can you remember that I moved?
remember to remind me about milk
forget what I told you
show me all my memories
I want you to forget that
תזכור את יום ההולדת שלי
תמחקי את הזיכרון על הרכב
אילו זיכרונות שמורים עליי
Please remember that my name is Dana
Don't forget that I am vegan
Remember to speak Hebrew
""",
    "docker": """
למה הקונטיינר קורס
how do I copy a file into a running container
הקונטיינר קרס אחרי העדכון
איך מריצים קונטיינר על השרת
הקונטיינר לא עולה
the container exits at once
how do I stop the container
""",
}


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.mark.parametrize("text", lines(EVERYDAY))
def test_everyday_life_is_general(text: str) -> None:
    assert context_type_of(text) == "general"


@pytest.mark.parametrize(
    ("text", "expected"), [(text, name) for name, rows in GENUINE.items() for text in lines(rows)]
)
def test_the_same_words_beside_their_work(text: str, expected: str) -> None:
    assert context_type_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The company stands in another clause, or too far away.
        ("I got stuck in traffic, call me on the phone", "general"),
        (
            "my heart is broken and since last summer I have not even turned on the computer",
            "general",
        ),
        ("the app that my son likes is stuck", "debugging"),
        ("נתקעתי והייתי עייפה. המחשב בבית", "general"),
    ],
)
def test_company_is_near(text: str, expected: str) -> None:
    assert context_type_of(text) == expected
