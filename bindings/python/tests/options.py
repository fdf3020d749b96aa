"""Options that several tests search with."""

from thalweg_search import Options

FIXED = Options(
    fixed=True, ignore_case=False, hidden=True, ignore_files=False, globs=[]
)
