//! What documents show, for tests that build and run it.

/// The code blocks of a page in this language, as they stand there.
#[must_use]
pub fn code_blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, block)) = rest.split_once(begin.as_str()) {
        let Some((block, behind)) = block.split_once("\n```") else { break };
        blocks.push(block);
        rest = behind;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::code_blocks;

    #[test]
    fn blocks_of_a_language_are_found() {
        let page = "a\n```c\nint x;\n```\n```cpp\nint y;\n```\n```c\nint z;\nint u;\n```\n";
        assert_eq!(code_blocks(page, "c"), ["int x;", "int z;\nint u;"]);
        assert_eq!(code_blocks(page, "cpp"), ["int y;"]);
        assert!(code_blocks(page, "sh").is_empty());
    }
}
