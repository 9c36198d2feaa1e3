//! What comes out of one of a worker's pipes, piece by piece: whole lines, or what a terminal would show by now.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::watch;

/// Bytes of a line that are kept together; what is longer becomes several lines.
const MAX_LINE_BYTES: usize = 8 << 10;
/// How long the rest of a line is waited for before its beginning is shown, where output is shown as it comes.
const LINE_TIMEOUT: Duration = Duration::from_millis(100);
/// How long nothing may come after the worker has ended: an unknown process may hold the pipe open.
const SILENCE: Duration = Duration::from_millis(500);
/// The most that is in a pipe when its worker ends (/proc/sys/fs/pipe-max-size); what comes after that is another's.
const MAX_PIPE_BYTES: usize = 1 << 20;
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;

/// A worker's standard output or standard error.
pub(super) struct WorkerPipe {
    pipe: pipe::Receiver,
    /// What was read and not taken.
    bytes: Vec<u8>,
    /// When the first of these came.
    since: Instant,
    /// Whether what is printed is taken before its line is whole.
    is_at_once: bool,
    /// Whether the worker has ended.
    ended: watch::Receiver<bool>,
    /// How much may still come once it has.
    left: Option<usize>,
}

/// What reading came to.
enum Came {
    Something,
    /// The rest of a line did not.
    Nothing,
    TheEnd,
}

// === impl WorkerPipe ===

impl WorkerPipe {
    pub(super) fn new(
        pipe: OwnedFd,
        is_at_once: bool,
        ended: watch::Receiver<bool>,
    ) -> Option<Self> {
        let pipe = pipe::Receiver::from_owned_fd(pipe).ok()?;
        let (bytes, since) = (Vec::new(), Instant::now());
        Some(Self { pipe, bytes, since, is_at_once, ended, left: None })
    }

    /// The next piece; nothing at the end.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let piece = match self.read().await {
                Came::Something if self.is_at_once => drawn_lines(&mut self.bytes),
                Came::Something => whole_lines(&mut self.bytes),
                Came::Nothing => std::mem::take(&mut self.bytes),
                Came::TheEnd if self.is_at_once => {
                    return not_empty(std::mem::take(&mut self.bytes));
                }
                Came::TheEnd => return not_empty(rest(&mut self.bytes)),
            };
            if !piece.is_empty() {
                self.since = Instant::now();
                return Some(piece);
            }
        }
    }

    async fn read(&mut self) -> Came {
        let has_begun = self.is_at_once && !self.bytes.is_empty();
        let limit = match (has_begun, self.left) {
            (_, Some(0)) => return Came::TheEnd,
            (true, _) => LINE_TIMEOUT.saturating_sub(self.since.elapsed()),
            (false, Some(_)) => SILENCE,
            (false, None) => Duration::MAX,
        };
        self.bytes.reserve(READ_BYTES);
        let was_empty = self.bytes.is_empty();
        let read = tokio::select! {
            read = tokio::time::timeout(limit, self.pipe.read_buf(&mut self.bytes)) => read,
            // One that no one watches any more has ended too.
            _ = self.ended.wait_for(|ended| *ended), if self.left.is_none() => {
                self.left = Some(MAX_PIPE_BYTES);
                return Came::Something;
            }
        };
        match read {
            // An error is an end too: nothing more will come.
            Ok(Ok(0) | Err(_)) => Came::TheEnd,
            Ok(Ok(count)) => {
                if was_empty {
                    self.since = Instant::now();
                }
                self.left = self.left.map(|left| left.saturating_sub(count));
                Came::Something
            }
            Err(_) if has_begun => Came::Nothing,
            Err(_) => Came::TheEnd,
        }
    }
}

fn not_empty(bytes: Vec<u8>) -> Option<Vec<u8>> {
    (!bytes.is_empty()).then_some(bytes)
}

/// Takes off the front of `bytes` what a terminal shows: whole lines, and a progress bar's, which end with a carriage return.
fn drawn_lines(bytes: &mut Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
    if bytes.len() - end >= MAX_LINE_BYTES {
        return std::mem::take(bytes);
    }
    let left = bytes.split_off(end);
    std::mem::replace(bytes, left)
}

/// Takes the whole lines off the front of `bytes`, and what is too long for one line.
fn whole_lines(bytes: &mut Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if bytes.len() - end >= MAX_LINE_BYTES {
        return rest(bytes);
    }
    let left = bytes.split_off(end);
    std::mem::replace(bytes, left)
}

/// Takes everything, as whole lines.
fn rest(bytes: &mut Vec<u8>) -> Vec<u8> {
    let mut lines = std::mem::take(bytes);
    if lines.last().is_some_and(|last| *last != b'\n') {
        lines.push(b'\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_stay_whole_and_long_ones_are_cut() {
        let mut bytes = b"one\ntwo\nthr".to_vec();
        assert_eq!((whole_lines(&mut bytes), &bytes[..]), (b"one\ntwo\n".to_vec(), &b"thr"[..]));
        assert_eq!((whole_lines(&mut bytes), &bytes[..]), (Vec::new(), &b"thr"[..]));
        assert_eq!((rest(&mut bytes), bytes.len()), (b"thr\n".to_vec(), 0));
        assert_eq!(rest(&mut bytes), b"");
        let mut endless = vec![b'x'; MAX_LINE_BYTES];
        let cut = whole_lines(&mut endless);
        assert_eq!((cut.len(), cut.last(), endless.len()), (MAX_LINE_BYTES + 1, Some(&b'\n'), 0));
    }

    #[test]
    fn a_progress_bar_is_shown_as_it_moves() {
        let mut bytes = b"1%\r2%\r3".to_vec();
        assert_eq!((drawn_lines(&mut bytes), &bytes[..]), (b"1%\r2%\r".to_vec(), &b"3"[..]));
        let mut endless = vec![b'x'; MAX_LINE_BYTES];
        assert_eq!((drawn_lines(&mut endless).len(), endless.len()), (MAX_LINE_BYTES, 0));
    }

    fn piped(is_at_once: bool) -> (std::io::PipeWriter, watch::Sender<bool>, WorkerPipe) {
        let (reader, writer) = std::io::pipe().unwrap();
        let (end, ended) = watch::channel(false);
        (writer, end, WorkerPipe::new(reader.into(), is_at_once, ended).unwrap())
    }

    #[tokio::test]
    async fn dots_are_shown_before_the_next_one_has_come() {
        let (mut writer, _end, mut pipe) = piped(true);
        let dots = std::thread::spawn(move || {
            for _ in 0..40 {
                writer.write_all(b".").unwrap();
                std::thread::sleep(LINE_TIMEOUT / 4);
            }
        });
        let mut pieces = Vec::new();
        while let Some(piece) = pipe.next().await {
            pieces.push(piece);
        }
        dots.join().unwrap();
        assert!(pieces.len() > 1, "they are all in one piece: {pieces:?}");
        assert_eq!(pieces.concat(), b".".repeat(40));
    }

    #[tokio::test]
    async fn what_a_worker_has_left_in_its_pipe_is_taken_and_no_more_than_that() {
        let (mut writer, end, mut pipe) = piped(false);
        writer.write_all(b"its last line\n").unwrap();
        end.send_replace(true);
        assert_eq!(pipe.next().await.as_deref(), Some(&b"its last line\n"[..]));
        // The pipe stays open, and nothing comes.
        assert_eq!(pipe.next().await, None);

        for is_at_once in [false, true] {
            let (mut writer, end, mut pipe) = piped(is_at_once);
            end.send_replace(true);
            let other = std::thread::spawn(move || while writer.write_all(b"another's").is_ok() {});
            let mut taken = 0;
            while let Some(piece) = pipe.next().await {
                taken += piece.len();
            }
            assert!((MAX_PIPE_BYTES..2 * MAX_PIPE_BYTES).contains(&taken), "{taken}");
            drop(pipe);
            other.join().unwrap();
        }
    }
}
