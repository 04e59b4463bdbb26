"""What Canvas and Moodle give of submissions finds its students; what does not is named."""

import zipfile
from types import SimpleNamespace

import pytest

from grader.course.course import CourseError
from grader.instructor.collect import collect, read_collected
from grader.nbgrader.coursebook import Student

CLASS = [
    Student("ada", "Ada", "Byron", "", "4711"),
    Student("lukasz", "Łukasz", "de la Cruz", "", ""),
    Student("twin1", "Jo", "Ng", "", ""),
    Student("twin2", "Ng", "Jo", "", ""),
]
DROPPED = [Student("emil", "Emil", "Marr", "", "4049"), Student("lu", "Lu", "Wu", "", "")]


@pytest.fixture
def take(tmp_path):
    """Collect a zip of these files, all with the text of their number; return what became of it."""
    chapter = SimpleNamespace(root=tmp_path, id="ch01_formats", name="formats")

    def take(*names, start=0, **more):
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            for number, name in enumerate(names, start):
                archive.writestr(name, str(number))
        return collect(chapter, tmp_path / "all.zip", CLASS, DROPPED, **more)

    take.chapter = chapter
    take.files = lambda: {
        str(path.relative_to(tmp_path / "submitted")): path.read_text()
        for path in (tmp_path / "submitted").rglob("*")
        if path.is_file()
    }
    return take


def test_canvas(take):
    names = (
        "someoneelse_LATE_4711_98765_formats-2.ipynb",  # the number counts, not the name
        "delacruzłukasz_17_98766_My notebook.ipynb",
        "delacruzłukasz_17_98767_decode.py",
    )
    done = take(*names)
    assert (done.placed, done.late, done.unplaced) == (("ada", "lukasz"), ("ada",), {})
    assert take.files() == {
        "ada/ch01_formats/formats.ipynb": "0",
        "lukasz/ch01_formats/formats.ipynb": "1",
        "lukasz/ch01_formats/decode.py": "2",
    }
    assert read_collected(take.chapter)["ada"]["back"] == names[0]
    stamp = take.chapter.root / "submitted/ada/ch01_formats/timestamp.txt"
    stamp.write_text("2027-03-02T10:00:00+01:00")
    assert take(*names).unchanged == ("ada", "lukasz") and stamp.exists()
    assert take(names[0], start=7).placed == ("ada",)
    assert take.files()["ada/ch01_formats/formats.ipynb"] == "7" and not stamp.exists()


@pytest.mark.parametrize("between", ["/", "_/", "_"])
def test_moodle(take, between):
    """Folders as of version 4.1, as before, and all files in one folder."""
    place = "Łukasz de la Cruz_1234_assignsubmission_file"
    done = take(f"{place}{between}formats.ipynb")
    assert (done.placed, done.unplaced) == (("lukasz",), {})
    assert read_collected(take.chapter)["lukasz"] == {"system": "moodle", "back": place}


def test_what_has_no_place_is_named(take):
    odd = "../../etc/passwd.ipynb"
    nobody, twins = "nobody_1_2_formats.ipynb", "Jo Ng_7_assignsubmission_file/formats.ipynb"
    left = "marremil_4049_6_formats.ipynb"
    done = take(odd, nobody, twins, left, "adabyron_4711_5_essay.docx")
    assert not done.placed and not take.files()
    said = done.unplaced
    assert said[odd].startswith("its name is neither")
    assert said[nobody].startswith("no student of the roster fits (name 'nobody', number 1)")
    assert said[left].startswith("emil was dropped. Back again: undertorch course rejoin emil")
    assert said["Jo Ng_7_assignsubmission_file"].startswith("it fits twin1, twin2")
    assert said["adabyron_4711_5_essay.docx"] == "it is no notebook and no .py file"


MOODLE = "Lu Wu_61_assignsubmission_file", "Lu Wu_62_assignsubmission_file"


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("byronada_4711_1_formats.ipynb", "adabyron_99_2_formats.ipynb"), "no student"),
        (("-_7_1_formats.ipynb",), "no student"),
        (("marremil_4049_1_formats.ipynb",), "emil was dropped"),
        (("delacruzłukasz_17_1_a.ipynb", "delacruzłukasz_18_2_a.ipynb"), "it fits lukasz, and so"),
        ((f"{MOODLE[0]}/formats.ipynb",), "it fits lu2, lu (dropped)"),
    ],
)
def test_work_of_one_is_never_taken_for_that_of_another(take, monkeypatch, names, why):
    """Of the same name, or of none, are: a stranger with a number of his own, two of whom one dropped, two of
    whom the roster has one.
    """
    more = [Student("lu2", "Lu", "Wu", "", ""), Student("emil2", "Emil", "Marr", "", "4050")]
    more.append(Student("nameless"))
    monkeypatch.setattr("tests.instructor.test_collect.CLASS", [*CLASS, *more])
    done = take(*names)
    assert done.unplaced and all(why in said for said in done.unplaced.values())
    assert set(done.placed) == ({"ada"} if names[0].startswith("byron") else set())


def test_a_number_says_whose_it_is(take):
    files = [f"{place}/formats.ipynb" for place in MOODLE]
    done = take(*files, place={"61": "twin1", "62": "twin2"})
    assert (done.placed, done.unplaced) == (("twin1", "twin2"), {})
    assert read_collected(take.chapter)["twin2"]["back"] == MOODLE[1]
    with pytest.raises(CourseError, match=r"No student has the id lu\."):
        take(*files, place={"61": "lu"})


def test_no_zip(take):
    path = take.chapter.root / "all.zip"
    path.write_text("no")
    with pytest.raises(CourseError, match="cannot be read as a zip"):
        collect(take.chapter, path, CLASS)


def test_one_students_files_are_bounded(take, monkeypatch):
    monkeypatch.setattr("grader.instructor.collect.BYTES_LIMIT", 2)  # each of these has one byte
    many = [f"byronada_4711_{number}_part{number}.py" for number in range(3)]
    done = take("delacruzłukasz_17_98766_formats.ipynb", *many)
    assert done.placed == ("ada", "lukasz") and list(done.unplaced) == [many[2]]
