"""Search options that several tests use."""

from thalweg_search import Options

FIXED = Options(
    fixed=True, ignore_case=False, hidden=True, ignore_files=False, globs=[]
)
