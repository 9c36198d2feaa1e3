//! A directory of events: what the default consumer writes, and what Neuron's own consumers do.
//!
//! Any directory with a `metadata.txt` is an event; prefix, core and iteration are what that says,
//! else what the path does. All metadata is read once to bring events into order; data stays where
//! it is until an event is loaded. Symbolic links are not followed.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::metadata::{self, DATA, METADATA, Metadata};
use super::watch::{Change, DirectoryWatch};
use super::{CapturedEvent, Item, Payload, Unreadable};

/// The most events of a directory that are brought into order; those behind them are reported.
pub const MAX_EVENTS: usize = 1 << 20;
/// The deepest directory that is checked; a prefix with slashes makes some.
const MAX_DEPTH: usize = 64;
/// For how many cores sequence numbers are followed.
const MAX_CORES: usize = 4_096;
/// Written last, so that an event that has it is whole.
const TEXT: &str = "formatted_tensor.txt";

/// A directory of events, brought into the order of their times and sequence numbers; those
/// without a time come last, in the order in which they were written.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
    /// Directories that have events, by number.
    parents: Vec<PathBuf>,
    ready: VecDeque<EventEntry>,
    /// How often it was scanned.
    looks: u64,
    /// What was found beside events, reported first.
    reported: VecDeque<Item>,
    /// Items that stand behind an event that is yet to be given.
    next: Option<Item>,
    last_sequence: HashMap<Option<u32>, u64>,
    /// Cores whose numbers come from several programs at once, so that gaps say nothing.
    mixed: HashSet<Option<u32>>,
    following: Option<Following>,
}

/// What following a directory takes.
#[derive(Debug)]
struct Following {
    watch: DirectoryWatch,
    /// Hashes of the paths of events that were given.
    seen: HashSet<u64>,
    /// Events that are not whole yet.
    unfinished: BTreeSet<PathBuf>,
    is_gone: bool,
}

/// An event that was found; kept small, since there may be many.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EventEntry {
    key: EventKey,
    parent: usize,
    name: OsString,
    /// The look that found it.
    look: u64,
}

/// What events are ordered by.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EventKey {
    has_no_time: bool,
    /// The time, or else that of the last change to the file.
    time_ns: u64,
    core: Option<u32>,
    number: Option<u64>,
}

/// What became of a directory that has an event's files.
enum EventDirectory {
    Whole(Box<Metadata>, Payload, u64),
    /// Something is missing that may still come.
    Part(String),
}

// === impl Directory ===

impl Directory {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let opened = Self::open_while(root, &mut || true)?;
        Ok(opened.expect("it was not interrupted"))
    }

    /// The same; none if `goes_on`, which is asked for each directory, returned false.
    pub(super) fn open_while(
        root: &Path,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<Option<Self>> {
        let (mut directory, places) = Self::begin(root, None)?;
        Ok(directory.gather_while(places, goes_on).then_some(directory))
    }

    /// Opens a directory to be followed: [`Directory::look_again`] finds what was added.
    ///
    /// # Errors
    /// When it cannot be opened or watched.
    pub fn follow(root: &Path) -> io::Result<Self> {
        let (seen, unfinished) = (HashSet::new(), BTreeSet::new());
        let following =
            Following { watch: DirectoryWatch::new()?, seen, unfinished, is_gone: false };
        let (mut directory, places) = Self::begin(root, Some(following))?;
        directory.gather(places);
        Ok(directory)
    }

    /// A directory of which nothing is read yet, and where to begin.
    fn begin(root: &Path, following: Option<Following>) -> io::Result<(Self, Vec<PathBuf>)> {
        let root = root.canonicalize()?;
        // Below it, what cannot be opened is reported; here it is the end.
        fs::read_dir(&root)?;
        let directory = Self {
            root: root.clone(),
            parents: Vec::new(),
            ready: VecDeque::new(),
            looks: 0,
            reported: VecDeque::new(),
            next: None,
            last_sequence: HashMap::new(),
            mixed: HashSet::new(),
            following,
        };
        Ok((directory, vec![root]))
    }

    /// How many events were found and not yet given.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.ready.len()
    }

    /// What is watched, to wait for; none if the directory is not followed.
    #[must_use]
    pub fn watch(&self) -> Option<&DirectoryWatch> {
        self.following.as_ref().map(|following| &following.watch)
    }

    /// Whether the directory that is followed is no longer there.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.following.as_ref().is_some_and(|following| following.is_gone)
    }

    /// How many events there are that were not whole when last checked.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.following.as_ref().map_or(0, |following| following.unfinished.len())
    }

    /// Checks what has changed since, or everything where that is not known. What is new is
    /// next. Does nothing if the directory is not followed.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn look_again(&mut self) -> io::Result<()> {
        let Some(following) = &mut self.following else { return Ok(()) };
        self.looks += 1;
        let is_incomplete = following.watch.is_incomplete();
        let Some(changes) = following.watch.changes()?.filter(|_| !is_incomplete) else {
            self.gather(vec![self.root.clone()]);
            return Ok(());
        };
        let mut places = BTreeSet::new();
        for change in changes {
            match change {
                Change::Gone(path) => following.is_gone |= path == self.root,
                Change::At(path) => {
                    let is_file_of_event = path
                        .file_name()
                        .is_some_and(|name| name == METADATA || name == DATA || name == TEXT);
                    match path.parent() {
                        Some(parent) if is_file_of_event => places.insert(parent.to_owned()),
                        _ if path.file_name().is_some_and(is_unfinished) => false,
                        _ if path.symlink_metadata().is_ok_and(|found| found.is_dir()) => {
                            path != self.root && places.insert(path)
                        }
                        _ => false,
                    };
                }
            }
        }
        self.gather(places.into_iter().collect());
        Ok(())
    }

    /// What is next; none when everything found was given.
    pub fn next_item(&mut self) -> Option<Item> {
        if let Some(item) = self.reported.pop_front().or_else(|| self.next.take()) {
            return Some(item);
        }
        if self.ready.front().is_some_and(|entry| self.may_come_late(entry)) {
            // What the kernel cannot say now, the caller hears when it looks.
            let _ = self.look_again();
        }
        let entry = self.ready.pop_front()?;
        let path = self.parents[entry.parent].join(&entry.name);
        let item = self.item(&path);
        let missing = match &item {
            Item::Event(event) => self.missing_before(event),
            _ => None,
        };
        match missing {
            Some(missing) => {
                self.next = Some(item);
                Some(missing)
            }
            None => Some(item),
        }
    }

    /// Whether events before this one may be missing only because they were written where the poll
    /// that found it had already been. The next poll finds them.
    fn may_come_late(&self, entry: &EventEntry) -> bool {
        let Some(number) = entry.key.number else { return false };
        let expected =
            self.last_sequence.get(&entry.key.core).map_or(0, |last| last.saturating_add(1));
        self.following.is_some() && entry.look == self.looks && number > expected
    }

    /// Goes through these directories and all below them.
    fn gather(&mut self, places: Vec<PathBuf>) {
        self.gather_while(places, &mut || true);
    }

    /// The same; false if `goes_on` was, and nothing is ready then.
    fn gather_while(
        &mut self,
        mut places: Vec<PathBuf>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        let mut found = Vec::new();
        let most = MAX_EVENTS.saturating_sub(self.ready.len());
        let mut left_out = 0_u64;
        while let Some(place) = places.pop() {
            if !goes_on() {
                return false;
            }
            if self.following.as_ref().is_some_and(|following| following.has_seen(&place)) {
                continue;
            }
            // Before it is checked, so that nothing comes in between.
            if let Some(following) = &mut self.following {
                following.watch.add(&place);
            }
            let below = match self.look_into(&place, &mut found) {
                Ok(below) => below,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.tell(&place, format!("cannot look into it: {error}"));
                    continue;
                }
            };
            let room = most.saturating_sub(found.len() + places.len());
            left_out += u64::try_from(below.len().saturating_sub(room)).unwrap_or(0);
            places.extend(below.into_iter().take(room));
        }
        if left_out > 0 {
            let reason = format!(
                "{left_out} more directories than the {MAX_EVENTS} events that are read at once; \
                 give a directory below it"
            );
            self.tell(&self.root.clone(), reason);
        }
        self.ready.extend(found);
        self.ready.make_contiguous().sort_unstable();
        self.find_mixed();
        true
    }

    /// Numbers that go back, but not to the start as those of a program run again, are those of
    /// several programs that write at once.
    fn find_mixed(&mut self) {
        let mut last = self.last_sequence.clone();
        for EventKey { core, number, .. } in self.ready.iter().map(|entry| &entry.key) {
            let Some(number) = number else { continue };
            let before = last.insert(*core, *number);
            if *number > 0 && before.is_some_and(|before| *number <= before) {
                self.mixed.insert(*core);
            }
        }
    }

    /// Adds the directory if it is an event, and gives the directories in it.
    fn look_into(&mut self, place: &Path, found: &mut Vec<EventEntry>) -> io::Result<Vec<PathBuf>> {
        let mut below = Vec::new();
        let (mut has_metadata, mut has_data, mut has_text) = (false, false, false);
        for entry in fs::read_dir(place)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let name = entry.file_name();
            if kind.is_dir() && !is_unfinished(&name) {
                below.push(entry.path());
            }
            has_metadata |= name == METADATA;
            has_data |= name == DATA;
            has_text |= name == TEXT;
        }
        if has_metadata || has_data {
            self.consider(place, has_text, found);
        }
        let depth = place.strip_prefix(&self.root).map_or(0, |inside| inside.components().count());
        if depth >= MAX_DEPTH && !below.is_empty() {
            self.tell(place, format!("it is more than {MAX_DEPTH} directories deep"));
            below.clear();
        }
        Ok(below)
    }

    fn consider(&mut self, place: &Path, has_text: bool, found: &mut Vec<EventEntry>) {
        let look = look_at(place);
        if let Some(following) = &mut self.following {
            if matches!(look, EventDirectory::Part(_)) && !has_text {
                following.unfinished.insert(place.to_owned());
                return;
            }
            following.unfinished.remove(place);
            following.watch.remove(place);
            following.remember(place);
        }
        let key = match look {
            EventDirectory::Whole(metadata, ..) => EventKey::of(place, Some(&metadata)),
            EventDirectory::Part(_) => EventKey::of(place, None),
        };
        let parent = place.parent().unwrap_or(place);
        let (parent, name) = match place.file_name() {
            Some(name) => (parent, name.to_owned()),
            None => (place, OsString::new()),
        };
        if self.parents.last().is_none_or(|last| last != parent) {
            self.parents.push(parent.to_owned());
        }
        found.push(EventEntry { key, parent: self.parents.len() - 1, name, look: self.looks });
    }

    fn tell(&mut self, place: &Path, reason: String) {
        let place = place.to_string_lossy().into_owned();
        self.reported.push_back(Item::Unreadable(Unreadable { place, reason }));
    }

    fn item(&self, path: &Path) -> Item {
        let (found, payload, bytes) = match look_at(path) {
            EventDirectory::Whole(found, payload, bytes) => (found, payload, bytes),
            EventDirectory::Part(reason) => {
                let place = path.to_string_lossy().into_owned();
                return Item::Unreadable(Unreadable { place, reason });
            }
        };
        let by_path = ByPath::of(&self.root, path);
        let is_ours = found.prefix.is_some();
        Item::Event(Box::new(CapturedEvent {
            kind: found.kind,
            sequence: found.sequence,
            time_ns: found.time_ns,
            iteration: found.iteration.or(by_path.iteration.filter(|_| !is_ours)),
            core: found.core.or(by_path.core),
            pipe: found.pipe,
            prefix: found.prefix.unwrap_or(by_path.prefix),
            dtype: found.dtype,
            shape: found.shape,
            bytes,
            payload,
        }))
    }

    /// What is missing between the event before of this core and this one.
    fn missing_before(&mut self, event: &CapturedEvent) -> Option<Item> {
        let sequence = event.sequence.filter(|_| !self.mixed.contains(&event.core))?;
        if self.last_sequence.len() >= MAX_CORES && !self.last_sequence.contains_key(&event.core) {
            return None;
        }
        let last = self.last_sequence.insert(event.core, sequence)?;
        // A smaller number is that of another program, or of the same one run again.
        let events = sequence.checked_sub(last)?.checked_sub(1).filter(|events| *events > 0)?;
        Some(Item::Missing { core: event.core, events })
    }
}

impl Following {
    fn has_seen(&self, path: &Path) -> bool {
        self.seen.contains(&hash(path))
    }

    fn remember(&mut self, path: &Path) {
        // A follower of so long may see an event twice after a lost change.
        if self.seen.len() >= MAX_EVENTS {
            self.seen.clear();
        }
        self.seen.insert(hash(path));
    }
}

/// Whether it is where the default consumer fills an event's directory before naming it.
fn is_unfinished(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".unfinished-")
}

fn hash(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

impl EventKey {
    fn of(place: &Path, found: Option<&Metadata>) -> Self {
        let time_ns = found.and_then(|found| found.time_ns);
        let changed = || {
            let changed = place.join(METADATA).symlink_metadata().and_then(|file| file.modified());
            let since = changed.ok()?.duration_since(UNIX_EPOCH).ok()?;
            u64::try_from(since.as_nanos()).ok()
        };
        Self {
            has_no_time: time_ns.is_none(),
            time_ns: time_ns.or_else(changed).unwrap_or(u64::MAX),
            core: found.and_then(|found| found.core),
            number: found.and_then(|found| found.sequence.or(found.iteration)),
        }
    }
}

/// Whether the event's files are all there and fit together.
fn look_at(place: &Path) -> EventDirectory {
    let found = match metadata::read(place) {
        Ok(found) => Box::new(found),
        Err(reason) => return EventDirectory::Part(reason),
    };
    let data = place.join(DATA);
    let (bytes, payload) = match data.symlink_metadata() {
        Ok(file) if file.is_file() => (file.len(), Payload::File(data)),
        Ok(_) => return EventDirectory::Part(format!("{DATA} is no file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Its writer did not want the data, or was killed.
            let bytes = found.data_bytes.unwrap_or(0);
            return if place.join(TEXT).exists() || bytes == 0 {
                EventDirectory::Whole(found, Payload::LeftOut(None), bytes)
            } else {
                EventDirectory::Part(format!("it has no {DATA}"))
            };
        }
        Err(error) => return EventDirectory::Part(format!("cannot look at {DATA}: {error}")),
    };
    match found.data_bytes {
        Some(expected) if expected != bytes => EventDirectory::Part(format!(
            "{DATA} has {bytes} bytes and {METADATA} says {expected}; it was cut short, or is \
             still being written"
        )),
        _ => EventDirectory::Whole(found, payload, bytes),
    }
}

/// What a path reports about an event: `<prefix>/core_<n>/<iteration>`.
struct ByPath {
    prefix: String,
    core: Option<u32>,
    iteration: Option<u64>,
}

impl ByPath {
    fn of(root: &Path, path: &Path) -> Self {
        let names: Vec<String> = path
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
                _ => None,
            })
            .collect();
        let inside = root.components().filter(|part| matches!(part, Component::Normal(_))).count();
        let core = names.len().checked_sub(2).and_then(|at| {
            let number = names[at].strip_prefix("core_")?.parse().ok()?;
            Some((at, number))
        });
        let Some((at, core)) = core else {
            let prefix = names[inside.min(names.len())..].join("/");
            return Self { prefix, core: None, iteration: None };
        };
        // Where the root is inside the prefix, its last part is what is known of it.
        let first = inside.min(at.saturating_sub(1));
        let prefix = names[first..at].join("/");
        Self { prefix, core: Some(core), iteration: names[at + 1].parse().ok() }
    }
}
