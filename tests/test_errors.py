from interp.errors import one_line, shortened


def test_a_long_text_loses_its_middle():
    assert shortened("a" * 200) == "a" * 200
    assert shortened("x" * 100 + "y" * 101, most=9) == "xxx...yyy"


def test_a_part_of_a_line_holds_no_break_and_nothing_that_a_terminal_obeys():
    assert one_line("two\nlines\t\x1b[31mred") == "two lines\\t\\x1b[31mred"
    assert one_line("name " * 100) == one_line("name " * 100)[:80]
