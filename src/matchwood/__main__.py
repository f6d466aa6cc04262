"""`python -m matchwood` is the command `matchwood`."""

from matchwood.cli import main

main()
