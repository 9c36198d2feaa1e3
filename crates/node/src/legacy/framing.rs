//! Which of the three forms the messages of a connection have, and where each begins. Pure.
//!
//! The stream has no lengths and no version. A request begins with its type, which is never zero,
//! and ends with bytes for answers, which always are. So the byte after a message of the right form
//! is not zero, and inside a longer one it is: the second message decides. Before it comes, silence
//! after exactly one message does, for a client writes a message at once. The form never changes;
//! what contradicts it is an error, after which nothing of the connection is believed any more.

use super::message::{MessageForm, Request};

/// What arrives at a connection.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    form: Option<MessageForm>,
    bytes: Vec<u8>,
    /// How many of them have been taken.
    taken: usize,
}

/// The bytes are no messages, or not of the form of those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contradiction;

impl Framing {
    /// Takes what arrived. At most as much is kept as one call brings, and a message.
    pub(crate) fn arrived(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, once its form is certain.
    pub(crate) fn next(&mut self) -> Result<Option<(MessageForm, Request)>, Contradiction> {
        let rest = &self.bytes[self.taken..];
        let form = match self.form {
            Some(form) => form,
            None => match decide(rest)? {
                Some(form) => *self.form.insert(form),
                None => return Ok(None),
            },
        };
        let Some(message) = rest.get(..form.bytes()) else {
            return if Request::is_possible(rest) { Ok(None) } else { Err(Contradiction) };
        };
        let request = Request::decode(message).ok_or(Contradiction)?;
        self.taken += form.bytes();
        Ok(Some((form, request)))
    }

    /// Whether what has arrived is one message, if nothing follows it.
    pub(crate) fn awaits_silence(&self) -> bool {
        self.form.is_none() && self.whole().is_some()
    }

    /// Takes note that nothing follows.
    pub(crate) fn fell_silent(&mut self) {
        if self.form.is_none() {
            self.form = self.whole();
        }
    }

    /// Whether a message has begun and not ended.
    pub(crate) fn is_within(&self) -> bool {
        self.taken < self.bytes.len()
    }

    /// The form of which exactly one message has arrived.
    fn whole(&self) -> Option<MessageForm> {
        let arrived = self.bytes.len() - self.taken;
        MessageForm::ALL.into_iter().find(|form| form.bytes() == arrived)
    }
}

/// The only form that `bytes` can have, when a message of it is there; none as long as several can.
fn decide(bytes: &[u8]) -> Result<Option<MessageForm>, Contradiction> {
    let possible = |form: &MessageForm| bytes.chunks(form.bytes()).all(Request::is_possible);
    let mut forms = MessageForm::ALL.into_iter().filter(possible);
    let first = forms.next().ok_or(Contradiction)?;
    let is_certain = forms.next().is_none() && bytes.len() >= first.bytes();
    Ok(is_certain.then_some(first))
}

#[cfg(test)]
mod tests {
    use super::{Contradiction, Framing};
    use crate::legacy::message::{LegacyAnswer, MessageForm, Verb};
    use proptest::prelude::*;

    fn message(verb: Verb, form: MessageForm, device: i32) -> Vec<u8> {
        LegacyAnswer { code: verb.code(), device, fields: Vec::new() }.encode(form)
    }

    /// The devices of the messages that are known so far, and their forms.
    fn all(framing: &mut Framing) -> Result<Vec<(MessageForm, i32)>, Contradiction> {
        let mut all = Vec::new();
        while let Some((form, request)) = framing.next()? {
            all.push((form, request.device));
        }
        Ok(all)
    }

    #[test]
    fn one_message_is_reported_by_the_silence_after_it() {
        for form in MessageForm::ALL {
            let mut framing = Framing::default();
            let message = message(Verb::Query, form, 5);
            framing.arrived(&message[..100]);
            assert_eq!((framing.next(), framing.awaits_silence()), (Ok(None), false));
            framing.fell_silent();
            assert!(framing.is_within() && framing.next() == Ok(None), "half a message is none");
            framing.arrived(&message[100..]);
            if form != MessageForm::Ring {
                assert_eq!((framing.next(), framing.awaits_silence()), (Ok(None), true));
                framing.fell_silent();
            }
            assert_eq!(all(&mut framing), Ok(vec![(form, 5)]));
            assert!(!framing.is_within() && !framing.awaits_silence());
        }
    }

    #[test]
    fn a_form_that_changes_is_a_contradiction() {
        for (first, second) in [
            (MessageForm::Buffers, MessageForm::Programs),
            (MessageForm::Buffers, MessageForm::Ring),
            (MessageForm::Programs, MessageForm::Buffers),
            (MessageForm::Programs, MessageForm::Ring),
            (MessageForm::Ring, MessageForm::Buffers),
            (MessageForm::Ring, MessageForm::Programs),
        ] {
            let mut framing = Framing::default();
            framing.arrived(&message(Verb::Alloc, first, 1));
            framing.fell_silent();
            assert_eq!(all(&mut framing), Ok(vec![(first, 1)]));
            framing.arrived(&message(Verb::Alloc, second, 2));
            framing.arrived(&message(Verb::Alloc, second, 3));
            let read = all(&mut framing);
            assert_eq!(read, Err(Contradiction), "{first:?}, then {second:?}");
        }
        for bytes in [&[0][..], &[4], &[7], &[1, 1], &[13], b"GET / HTTP/1.1"] {
            let mut framing = Framing::default();
            framing.arrived(bytes);
            assert_eq!(framing.next(), Err(Contradiction), "{bytes:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(telltale_harness::rounds(256, 20_000)))]
        #[test]
        fn however_a_stream_is_cut_its_messages_are_the_same(
            form in prop::sample::select(&MessageForm::ALL),
            verbs in prop::collection::vec(prop::sample::select(&Verb::ALL), 2..8),
            cuts in prop::collection::vec(1_usize..200, 1..60),
        ) {
            let messages = verbs.iter().zip(0..).map(|(verb, device)| message(*verb, form, device));
            let stream: Vec<u8> = messages.flatten().collect();
            let mut framing = Framing::default();
            let (mut rest, mut seen) = (&stream[..], Vec::new());
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                framing.arrived(now);
                seen.extend(all(&mut framing).unwrap());
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            let expected: Vec<(MessageForm, i32)> = verbs.iter().zip(0..).map(|(_, at)| (form, at)).collect();
            prop_assert_eq!(seen, expected);
        }

        #[test]
        fn no_stream_does_harm(parts in prop::collection::vec(
            prop::collection::vec(0_u8..3, 0..200), 0..8,
        )) {
            let mut framing = Framing::default();
            for part in &parts {
                framing.arrived(part);
                while let Ok(Some(_)) = framing.next() {}
                framing.fell_silent();
            }
            prop_assert!(framing.taken <= framing.bytes.len());
        }
    }
}
