class Lexicon:
    kind: int
    width: int
    count: int
    row_bits: int
    row_chars: int
    longest: int
    def __init__(self, page: bytes | memoryview) -> None: ...
    def words(self) -> list[bytes]: ...
