"""What an instructor does around a class: course folders, rosters, reports, evidence, packed graders."""
