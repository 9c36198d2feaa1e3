//! A runtime in a scratch directory, and a client that asks it.

use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use telltale_harness::Scratch;
use telltale_runtime::{DeviceDescription, Options, Runtime};
use telltale_wire::{FrameReader, Query, Reply, Report, frame};

/// How long anything may take that should be immediate.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// What came back.
pub(crate) struct Asked {
    pub(crate) reply: Reply,
    pub(crate) descriptor: Option<OwnedFd>,
}

/// Options that leave the environment aside.
pub(crate) fn options(directory: &Path) -> Options {
    let mut options = Options::from_variables("test 1", |_| None);
    options.directory = Some(directory.to_path_buf());
    options
}

/// A runtime whose files go to `scratch`.
pub(crate) fn started(scratch: &Scratch) -> Runtime {
    Runtime::start(options(scratch.path()))
}

/// A device that is known by its number alone.
pub(crate) fn numbered(logical_id: u32) -> DeviceDescription {
    DeviceDescription { logical_id, ..DeviceDescription::default() }
}

/// The names of the endpoints in `scratch`, sorted.
pub(crate) fn endpoints(scratch: &Scratch) -> Vec<String> {
    let entries = std::fs::read_dir(scratch.path()).expect("the scratch directory is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("plain names"))
        .filter(|name| name.ends_with(".sock"))
        .collect();
    names.sort();
    names
}

/// A connection to the only endpoint in `scratch`.
pub(crate) fn connect(scratch: &Scratch) -> UnixStream {
    let names = endpoints(scratch);
    assert_eq!(names.len(), 1, "{names:?}");
    let stream = UnixStream::connect(scratch.join(&names[0])).expect("the endpoint listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout can be set");
    stream
}

/// Sends one message and waits for the answer.
pub(crate) fn exchange(stream: &mut UnixStream, message: &[u8]) -> Asked {
    let framed = frame(message).expect("a short message");
    stream.write_all(&framed).expect("the endpoint reads");
    let mut reader = FrameReader::default();
    let mut descriptor = None;
    while !reader.is_complete() {
        let mut buffer = vec![0; reader.wanted_bytes()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [IoSliceMut::new(&mut buffer)];
        let received = recvmsg(&*stream, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)
            .expect("the endpoint answers");
        assert!(received.bytes > 0, "the endpoint closed the connection");
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                descriptor = descriptors.last().or(descriptor);
            }
        }
        reader.push(&buffer[..received.bytes]).expect("a frame within the limit");
    }
    let message = reader.take().expect("the frame is complete");
    Asked { reply: Reply::decode(&message).expect("an answer"), descriptor }
}

/// The report of the only endpoint in `scratch`.
pub(crate) fn ask(scratch: &Scratch, query: Query) -> Report {
    match exchange(&mut connect(scratch), &query.encode()).reply {
        Reply::Report(report) => *report,
        Reply::Refused(refusal) => panic!("{refusal}"),
    }
}
