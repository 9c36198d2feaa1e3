//! How much of a process is taken, whatever it claims to have.

/// Threads of one process that a sample holds; the main thread and Python's come first.
pub(crate) const MAX_THREADS: usize = 256;
/// Processes that one started, with those that they started, which are taken with it.
pub(crate) const MAX_CHILDREN: usize = 32;
/// Frames of one stack that are kept, innermost first.
pub(crate) const MAX_FRAMES: usize = 128;
/// Bytes of one name: of a function, a file, a thread.
pub(crate) const MAX_NAME: usize = 256;

/// A text that a process gave, without control characters and no longer than [`MAX_NAME`].
pub(crate) fn bounded(text: &str) -> String {
    let printable = text.chars().map(|one| if one.is_control() { '?' } else { one });
    let mut kept = String::new();
    for one in printable {
        if kept.len() + one.len_utf8() > MAX_NAME {
            break;
        }
        kept.push(one);
    }
    kept
}
