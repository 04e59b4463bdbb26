"""All that runs beside the student's code, in a box, a fork or a kernel; nothing else enters a box."""
