//! The frames of an HTTP/2 connection, as far as they show a client that speaks something else, or asks
//! for nothing without end: PING, SETTINGS, PRIORITY and frames of unknown types are answered or
//! ignored below any request, so that no limit of requests meets them.

/// What a client sends first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A frame's head: 24 bits of length, type, flags, 31 bits of stream (RFC 9113, section 4.1).
const HEAD_BYTES: usize = 9;
/// Types of frames that belong to requests: DATA, HEADERS, RST_STREAM, WINDOW_UPDATE, CONTINUATION.
/// Those that a client resets have a limit of their own.
const OF_REQUESTS: [u8; 5] = [0, 1, 3, 8, 9];

/// What has come on a connection so far.
#[derive(Debug, Default)]
pub(super) struct Frames {
    next: NextPart,
    /// Frames that belong to no request.
    idle: u64,
}

/// What comes next.
#[derive(Debug)]
enum NextPart {
    /// The rest of the preface.
    Preface(&'static [u8]),
    /// The rest of a frame's head, of which this is there.
    Head([u8; HEAD_BYTES], usize),
    /// So many bytes of a frame.
    Payload(u32),
    /// Nothing of HTTP/2.
    Foreign,
}

impl Default for NextPart {
    fn default() -> Self {
        Self::Preface(PREFACE)
    }
}

impl Frames {
    /// Checks bytes that came.
    pub(super) fn hear(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = match &mut self.next {
                NextPart::Preface(expected) => {
                    let (now, later) = expected.split_at(expected.len().min(bytes.len()));
                    let Some(rest) = bytes.strip_prefix(now) else {
                        self.next = NextPart::Foreign;
                        return;
                    };
                    self.next = match later {
                        [] => NextPart::Head([0; HEAD_BYTES], 0),
                        _ => NextPart::Preface(later),
                    };
                    rest
                }
                NextPart::Head(head, there) => {
                    let (now, rest) = bytes.split_at((HEAD_BYTES - *there).min(bytes.len()));
                    head[*there..*there + now.len()].copy_from_slice(now);
                    *there += now.len();
                    if *there == HEAD_BYTES {
                        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                        self.idle += u64::from(!OF_REQUESTS.contains(&head[3]));
                        self.next = NextPart::Payload(length);
                    }
                    rest
                }
                NextPart::Payload(left) => {
                    let now = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= u32::try_from(now).expect("at most what is left");
                    if *left == 0 {
                        self.next = NextPart::Head([0; HEAD_BYTES], 0);
                    }
                    &bytes[now..]
                }
                NextPart::Foreign => return,
            };
        }
    }

    /// Whether the preface was another's.
    pub(super) const fn is_foreign(&self) -> bool {
        matches!(self.next, NextPart::Foreign)
    }

    /// Whether the preface has come.
    pub(super) const fn is_spoken(&self) -> bool {
        matches!(self.next, NextPart::Head(..) | NextPart::Payload(_))
    }

    /// Frames that belong to no request.
    pub(super) const fn idle(&self) -> u64 {
        self.idle
    }
}

#[cfg(test)]
mod tests {
    use super::{Frames, PREFACE};

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, 0, 0, 0, 0, 1]);
        frame.extend(payload);
        frame
    }

    #[test]
    fn frames_are_distinguished_however_they_are_cut() {
        let mut bytes = PREFACE.to_vec();
        for (kind, payload) in
            [(4, &b""[..]), (1, b"headers"), (6, b"12345678"), (0, &[6; 300]), (6, b"12345678")]
        {
            bytes.extend(frame(kind, payload));
        }
        for piece in [1, 2, 5, 8, 9, 23, 24, 25, 1000] {
            let mut frames = Frames::default();
            assert!(!frames.is_spoken());
            bytes.chunks(piece).for_each(|bytes| frames.hear(bytes));
            assert!(frames.is_spoken() && !frames.is_foreign());
            assert_eq!(frames.idle(), 3, "in pieces of {piece}: settings and two pings");
        }
    }

    #[test]
    fn another_protocol_is_seen_at_its_first_bytes() {
        let mut frames = Frames::default();
        frames.hear(b"P");
        assert!(!frames.is_foreign(), "it may be either");
        frames.hear(b"OST / HTTP/1.1\r\n");
        assert!(frames.is_foreign() && !frames.is_spoken());
    }
}
