//! What a terminal does with a text.

/// Whether a terminal obeys a character instead of showing it (ECMA-48, section 5); ends of lines and tabs are harmless.
pub fn is_obeyed(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\r' | '\t')
}
