"""The whole circle in a browser, over nbgrader's exchange: fetch, solve, submit; grade, review; feedback."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from grader.building.sample import answers_of, reference_sources
from grader.course.answers import Role
from grader.course.course import Course
from grader.nbgrader import commands_on_path
from tests import ROOT
from tests.browser import PATIENCE
from tests.jupyter import Notebook, at_home, jupyter, solution_of

CHAPTER = Course(ROOT).chapter("ch01_formats")

COMMENT = "Read the last exercise of the chapter again, then try without it."

EXCHANGE = """
c = get_config()
c.CourseDirectory.course_id = "inside"
c.Exchange.root = {root!r}
"""


class Desks:
    """A student's folder, an instructor's course, and the exchange between them."""

    def __init__(self, root):
        self.root = root
        self.course, self.student = root / "course", root / "student"
        self.student.mkdir()
        for kind in ("chapters", "solutions"):
            shutil.copytree(ROOT / kind / CHAPTER.id, self.course / kind / CHAPTER.id)
        (self.course / "grader").symlink_to(ROOT / "grader")
        exchange = root / "exchange"
        exchange.mkdir()
        exchange.chmod(0o777)  # as nbgrader wants it
        self.config = EXCHANGE.format(root=str(exchange))
        config = (ROOT / "nbgrader_config.py").read_text() + self.config
        (self.course / "nbgrader_config.py").write_text(config)

    def nbgrader(self, *words):
        """Run one of the instructor's commands in the course."""
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *words],
            cwd=self.course,
            env=os.environ | at_home(self.root / "instructor"),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def lab_of_student(self):
        course = {"UNDERTORCH_COURSE": str(self.course)}
        return jupyter(
            "lab", self.student, self.root / "home", config=self.config, environment=course
        )

    def lab_of_instructor(self):
        return jupyter("lab", self.course, self.root / "instructor")


@pytest.fixture
def desks(tmp_path):
    commands_on_path()
    return Desks(tmp_path)


def wait(locator):
    """Wait until it is in sight, however busy the machine; return it."""
    locator.wait_for(timeout=PATIENCE)
    return locator


def open_lab(browser, address):
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    page.set_default_timeout(PATIENCE)
    page.goto(address, wait_until="domcontentloaded")
    return page


def assignments(page):
    """Open nbgrader's list of assignments; return its panel."""
    wait(page.locator(".jp-LauncherCard").first)  # it takes the focus, and an open menu closes
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_text("Assignment List", exact=True).click()
    return wait(page.locator("#assignments"))


def solve(page):
    """Solve an exercise wrongly, then rightly; take for another what is off limits."""
    wrong = answers_of(CHAPTER, Role.MISTAKE)["round_to_bf16"]
    notebook = Notebook(page)
    notebook.begin()
    notebook.run("def round_to_bf16", wrong)
    graded = notebook.run('grade("round_to_bf16")')
    wait(graded.locator(".ut-bad", has_text="You dropped the lower sixteen bits").first)
    notebook.run("def round_to_bf16", solution_of(reference_sources(CHAPTER)["round_to_bf16"]))
    graded = notebook.run('grade("round_to_bf16")')
    wait(graded.locator(".ut-good", has_text="6 of 6 points").first)
    notebook.run("def spacing", answers_of(CHAPTER, Role.BLOCKED)["spacing"])
    notebook.save()
    page.get_by_role("button", name="Validate").click()
    # the other exercises still hold their stubs
    dialog = wait(page.locator(".jp-Dialog", has_text="Validation Results"))
    dialog.get_by_role("button", name="Ok").click()


@pytest.mark.alone
def test_from_a_stub_to_read_feedback(desks, browser):
    desks.nbgrader("release_assignment", CHAPTER.id)
    with desks.lab_of_student() as address, open_lab(browser, address) as student:
        panel = assignments(student)
        panel.get_by_role("button", name="Fetch", exact=True).click()
        fetched = panel.locator("#fetched_assignments_list")
        wait(fetched.get_by_role("button", name="Submit"))
        fetched.get_by_text(CHAPTER.id).click()
        fetched.get_by_text(CHAPTER.name, exact=True).click()
        solve(student)
        student.get_by_role("tab", name="Assignments").click()
        fetched.get_by_role("button", name="Submit").click()
        submitted = panel.locator("#submitted_assignments_list")
        fetch_feedback = wait(submitted.get_by_role("button", name="Fetch Feedback"))

        desks.nbgrader("collect", CHAPTER.id)
        desks.nbgrader("autograde", CHAPTER.id)
        review(desks, browser)

        fetch_feedback.click()
        # the list is drawn anew when it came, and folded
        submitted.get_by_text("(view feedback)").wait_for(state="attached")
        submitted.get_by_text(CHAPTER.id).click()
        wait(submitted.get_by_text("(view feedback)"))
        (page,) = desks.student.glob(f"{CHAPTER.id}/feedback/*/{CHAPTER.name}.html")
        student.goto(page.as_uri())
        read_verdicts(student)
        assert COMMENT in student.inner_text("body")


def review(desks, browser):
    """Find the submission in formgrader, read why it needs review, comment, send feedback."""
    with desks.lab_of_instructor() as address:
        forms = address.removesuffix("lab") + "formgrader"
        with open_lab(browser, f"{forms}/gradebook/{CHAPTER.id}/{CHAPTER.name}") as page:
            row = page.get_by_role("row").filter(has_text="Submission #1")
            most = sum(exercise.points for exercise in CHAPTER.exercises)
            expect(row).to_contain_text(f"6 / {most:g}", timeout=PATIENCE)
            row.get_by_role("link", name="Submission #1").click()
            read_verdicts(page)
            comment = wait(page.locator("#spacing-comment"))
            why = re.compile("A note for a person. Used what is off limits")
            expect(comment).to_have_attribute("placeholder", why, timeout=PATIENCE)
            comment.fill(COMMENT)
            with page.expect_response("**/api/comment/*"):
                comment.blur()

            page.goto(f"{forms}/manage_submissions/{CHAPTER.id}")
            row = page.get_by_role("row").filter(has_text="needs manual grading")
            for step in ("generate-feedback", "release-feedback"):
                row.locator(f".{step} a").click()
                done = wait(page.locator(".modal.in"))
                assert "Successfully" in done.inner_text()
                done.get_by_role("button", name="OK").click()
                done.wait_for(state="hidden")


def read_verdicts(page):
    """Read what became of the two answers."""
    passed = wait(page.locator(".ut", has_text="Round FP32 to BF16").first)
    assert "6 of 6 points" in passed.inner_text()
    blocked = wait(page.locator(".ut", has_text="Measure the gap").first)
    assert "torch.nextafter" in blocked.inner_text()
    assert "A person will look at this" in blocked.inner_text()
