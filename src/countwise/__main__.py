"""python -m countwise"""

from countwise.cli import main

main()
