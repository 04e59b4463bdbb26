# The student's name is markup that runs a script.
# student: <img src=x onerror=alert(12)>
# %% folder
