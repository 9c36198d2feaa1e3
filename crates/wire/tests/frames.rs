//! Messages survive any cutting of the stream; wrong lengths cost one error and no memory.

use proptest::prelude::{Strategy, any, prop, proptest};
use telltale_wire::limits::MAX_FRAME_BYTES;
use telltale_wire::{FrameError, FrameReader, FrameWriter, frame};

/// Feeds `stream` to a reader in pieces of the given lengths, over and over.
fn messages(stream: &[u8], pieces: &[usize]) -> Vec<Vec<u8>> {
    let mut reader = FrameReader::default();
    let mut found = Vec::new();
    let mut rest = stream;
    let mut lengths = pieces.iter().cycle();
    while !rest.is_empty() {
        let piece = lengths.next().map_or(1, |length| *length).min(rest.len());
        let used = reader.push(&rest[..piece]).expect("short messages are allowed");
        rest = &rest[used..];
        found.extend(reader.take());
    }
    assert!(reader.is_empty());
    found
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1usize..40, 1..8)
}

proptest! {
    #[test]
    fn messages_survive_any_cutting(
        sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..6),
        pieces in pieces(),
    ) {
        let stream: Vec<u8> = sent.iter().flat_map(|message| frame(message).unwrap()).collect();
        proptest::prop_assert_eq!(messages(&stream, &pieces), sent);
    }

    #[test]
    fn no_stream_makes_a_reader_keep_more_than_came(
        stream in prop::collection::vec(any::<u8>(), 0..200),
        pieces in pieces(),
    ) {
        let mut reader = FrameReader::with_limit(64);
        let mut rest = stream.as_slice();
        for length in pieces.iter().cycle() {
            let piece = (*length).min(rest.len());
            match reader.push(&rest[..piece]) {
                Err(FrameError::TooLong { limit_bytes, .. }) => {
                    assert_eq!(limit_bytes, 64);
                    break;
                }
                Ok(used) => rest = &rest[used..],
            }
            if let Some(message) = reader.take() {
                assert!(message.len() <= 64);
            }
            assert!(reader.wanted_bytes() > 0);
            if rest.is_empty() {
                break;
            }
        }
    }
}

#[test]
fn an_endless_message_is_refused_by_its_prefix() {
    let mut reader = FrameReader::default();
    let error = reader.push(&u32::MAX.to_le_bytes()).unwrap_err();
    let announced_bytes = u64::from(u32::MAX);
    assert_eq!(error, FrameError::TooLong { announced_bytes, limit_bytes: MAX_FRAME_BYTES });
    assert!(frame(&vec![0; MAX_FRAME_BYTES + 1]).is_err());
    assert!(frame(&vec![0; MAX_FRAME_BYTES]).is_ok());
}

#[test]
fn a_reader_wants_no_byte_of_the_next_message() {
    let mut reader = FrameReader::default();
    assert_eq!(reader.wanted_bytes(), 4);
    assert_eq!(reader.push(&[3, 0]), Ok(2));
    assert!(!reader.is_empty());
    assert_eq!(reader.wanted_bytes(), 2);
    assert_eq!(reader.push(&[0, 0, b'a', b'b', b'c', 9]), Ok(5));
    assert_eq!(reader.wanted_bytes(), 0);
    assert_eq!(reader.take().as_deref(), Some(&b"abc"[..]));
    assert_eq!(reader.take(), None);
}

#[test]
fn a_writer_gives_out_each_byte_once() {
    let mut writer = FrameWriter::new(b"hello").unwrap();
    let mut sent = Vec::new();
    while !writer.is_done() {
        sent.push(writer.pending()[0]);
        writer.advance(1);
    }
    assert_eq!(sent, frame(b"hello").unwrap());
    assert!(writer.pending().is_empty());
}
