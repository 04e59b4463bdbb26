# Settings and a whole course of its own: what nbgrader, pdb or our commands would obey in that folder.
# %% folder
(folder / "nbgrader_config.py").write_text(f"open({str(course / 'owned')!r}, 'w')\n")
(folder / ".pdbrc").write_text(f"open({str(course / 'owned')!r}, 'w')\n")
(folder / "undertorch.toml").write_text("")
for name in ("chapters", "grader"):
    (folder / name / "ch01_formats").mkdir(parents=True)
