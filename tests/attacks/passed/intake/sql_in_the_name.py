# The student's name closes a statement of the gradebook's and begins another.
# student: Robert'); DROP TABLE grade; --
# %% folder
