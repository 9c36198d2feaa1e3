//! Where the service's servers listen: addresses as a person writes them, and sockets for them,
//! bound here or handed over by systemd.
//!
//! Nothing here accepts a connection. A socket file that a service left behind is replaced; one
//! that a process serves is not, unless it stands in a directory that is ours to keep and is another
//! user's.

mod address;
mod handed;

use std::fs::Metadata;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

pub use address::{Address, AddressError};
pub use handed::{Handed, HandedError};

/// Connections that the kernel keeps until they are accepted, at most as many as `net.core.somaxconn`
/// says. The standard library's 128 are full at once in a crowd; each later client then waits a second
/// before its system tries the next time.
const QUEUE: i32 = 4096;
/// The mode of a socket: every local user may ask, and is answered as it may be.
const SOCKET_MODE: u32 = 0o666;

/// The set-group-id bit, by which an installed runtime directory is distinguished from others.
const SET_GROUP_ID: u32 = 0o2000;

/// A socket that listens and does not block.
#[derive(Debug)]
pub enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A file of the file system.
    Unix(UnixListener),
}

/// A socket file that we made; dropping it removes the file, if it is still ours.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

/// Why no process can listen at an address.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The port cannot be had.
    #[error(
        "cannot listen on {address}; end what has it, or choose another address, with a port from \
         1024 on unless you are root"
    )]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The socket file cannot be made.
    #[error("cannot listen on {path}; choose another path, or make its directory writable")]
    Unix {
        /// Where.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A process listens there.
    #[error("{who} listens on {path} already; end it, or choose another path")]
    Taken {
        /// Where.
        path: PathBuf,
        /// Who, as far as can be seen from here.
        who: String,
    },
    /// There is something else, which only its owner may remove.
    #[error(
        "cannot listen on {path}; {kind} of user {owner} is there, where a socket belongs: move it \
         away if it is not needed, or choose another path"
    )]
    NotASocket {
        /// Where.
        path: PathBuf,
        /// What it is, with its article.
        kind: &'static str,
        /// Whose it is.
        owner: u32,
    },
    /// A relative path without a runtime directory.
    #[error("there is no runtime directory for {path}; write the whole path")]
    NoDirectory {
        /// The path.
        path: PathBuf,
    },
}

// === impl Listener ===

impl Listener {
    /// Listens at `address`; a relative path is in `directory`. With a socket file that is removed
    /// at the end.
    ///
    /// # Errors
    /// When the address cannot be had; the text says what to do.
    pub fn bind(
        address: &Address,
        directory: Option<&Path>,
    ) -> Result<(Self, Option<SocketFile>), BindError> {
        match address {
            Address::Tcp(address) => {
                let failed = |source| BindError::Tcp { address: *address, source };
                let listener = TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                rustix::net::listen(&listener, QUEUE).map_err(|error| failed(error.into()))?;
                Ok((Self::Tcp(listener), None))
            }
            Address::Unix(path) => {
                let path = match directory {
                    _ if path.is_absolute() => path.clone(),
                    Some(directory) => directory.join(path),
                    None => return Err(BindError::NoDirectory { path: path.clone() }),
                };
                let (listener, file) = bind_file(&path)?;
                Ok((Self::Unix(listener), Some(file)))
            }
        }
    }

    /// Whether something is in the way of listening at `path`, as far as known without
    /// making anything: a socket is not, whichever process serves it.
    ///
    /// # Errors
    /// When something else is there, or its directory is none.
    pub fn look_at(path: &Path) -> Result<(), BindError> {
        let failed = |source| BindError::Unix { path: path.to_owned(), source };
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        if !directory.metadata().map_err(failed)?.is_dir() {
            return Err(failed(Errno::NOTDIR.into()));
        }
        match path.symlink_metadata() {
            Ok(found) if may_go(path, &found) || found.file_type().is_socket() => Ok(()),
            Ok(found) => Err(not_a_socket(path, &found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Where it listens, as the system tells it.
    pub fn address(&self) -> Option<Address> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok().map(Address::Tcp),
            Self::Unix(listener) => {
                let address = listener.local_addr().ok()?;
                address.as_pathname().map(|path| Address::Unix(path.to_owned()))
            }
        }
    }
}

fn bind_file(path: &Path) -> Result<(UnixListener, SocketFile), BindError> {
    let failed = |source| BindError::Unix { path: path.to_owned(), source };
    make_way(path)?;
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(SOCKET_MODE)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let identity = identity(path).map_err(failed)?;
    Ok((listener, SocketFile { path: path.to_owned(), identity }))
}

/// Removes a socket file that no process serves, or that another user has put into a directory which
/// is ours to keep in order: the owner's, and root's on the owner's behalf. In an installed runtime
/// directory it need not be a socket. A directory there gets another name, for it is unknown what is
/// in it.
fn make_way(path: &Path) -> Result<(), BindError> {
    let failed = |source| BindError::Unix { path: path.to_owned(), source };
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !may_go(path, &found) {
        if !found.file_type().is_socket() {
            return Err(not_a_socket(path, &found));
        }
        if let Some(who) = who_listens(path).map_err(failed)? {
            return Err(BindError::Taken { path: path.to_owned(), who });
        }
    }
    if found.is_dir() { set_aside(path, &found) } else { std::fs::remove_file(path) }
        .map_err(failed)
}

/// Gives a squatter's directory a name that says whose it is and that is not taken.
fn set_aside(path: &Path, found: &Metadata) -> io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".of-user-{}.{now}", found.uid()));
    Ok(renameat_with(CWD, path, CWD, &aside, RenameFlags::NOREPLACE)?)
}

/// Whether what is at `path` is a squatter's, which goes whether or not it is served.
fn may_go(path: &Path, found: &Metadata) -> bool {
    let own_uid = rustix::process::geteuid().as_raw();
    let Some(directory) = path.parent().and_then(|parent| parent.metadata().ok()) else {
        return false;
    };
    let keeper = directory.uid();
    let is_squatted =
        [0, keeper].contains(&own_uid) && ![0, own_uid, keeper].contains(&found.uid());
    // Files of others belong into no runtime directory; elsewhere a path may have been mistyped.
    let is_installed = directory.mode() & SET_GROUP_ID != 0;
    is_squatted && (found.file_type().is_socket() || is_installed)
}

fn not_a_socket(path: &Path, found: &Metadata) -> BindError {
    let kind = found.file_type();
    let kind = match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_file() => "a file",
        () if kind.is_fifo() => "a pipe",
        () => "a device",
    };
    BindError::NotASocket { path: path.to_owned(), kind, owner: found.uid() }
}

/// The listener at `path`; `None` without one. Never waits: a listener whose queue is full is
/// there all the same.
fn who_listens(path: &Path) -> io::Result<Option<String>> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) => Ok(Some(who_answers(&socket))),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(None),
        Err(Errno::AGAIN) => Ok(Some(String::from("a process that does not answer"))),
        Err(error) => Err(error.into()),
    }
}

/// The process that listens at the other end, which the kernel noted when it began to.
fn who_answers(socket: &OwnedFd) -> String {
    let credentials = getsockopt(socket, PeerCredentials);
    match credentials.ok().filter(|credentials| credentials.pid() > 0) {
        Some(credentials) => {
            format!("process {} of user {}", credentials.pid(), credentials.uid())
        }
        None => String::from("another process"),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = path.symlink_metadata()?;
    Ok((found.dev(), found.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            // What cannot be removed is replaced by the next service.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, BindError, Listener};
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind as bind_to, listen, socket};
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::net::{UnixListener, UnixStream};
    use telltale_harness::{Scratch, needs_root};

    fn bind(address: &str, place: &Scratch) -> Result<(Listener, bool), BindError> {
        let (listener, file) = Listener::bind(&address.parse().unwrap(), Some(place.path()))?;
        let has_file = file.is_some();
        std::mem::drop(file);
        Ok((listener, has_file))
    }

    #[test]
    fn a_socket_file_is_for_all_users_and_goes_with_its_service() {
        let place = Scratch::new();
        let path = place.join("telemetry.sock");
        let address: Address = "unix:telemetry.sock".parse().unwrap();
        let (listener, file) = Listener::bind(&address, Some(place.path())).unwrap();
        assert_eq!(listener.address(), Some(Address::Unix(path.clone())));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o666);
        let taken = Listener::bind(&address, Some(place.path()));
        let words = format!("process {} of user ", std::process::id());
        assert!(taken.unwrap_err().to_string().starts_with(&words));
        drop((listener, file));
        assert!(!path.exists());
        // As a service that was killed leaves it.
        drop(UnixListener::bind(&path).unwrap());
        assert!(UnixStream::connect(&path).is_err() && path.exists());
        let (_listener, file) = Listener::bind(&address, Some(place.path())).unwrap();
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_socket_stays() {
        let place = Scratch::new();
        std::fs::write(place.join("a"), "x").unwrap();
        std::os::unix::fs::symlink(place.join("elsewhere"), place.join("b")).unwrap();
        std::fs::create_dir(place.join("c")).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let pipe = place.join("d");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let own = rustix::process::geteuid().as_raw();
        for (name, kind) in
            [("a", "a file"), ("b", "a symbolic link"), ("c", "a directory"), ("d", "a pipe")]
        {
            let path = place.join(name);
            let words = format!(
                "cannot listen on {}; {kind} of user {own} is there, where a socket belongs: move",
                path.display()
            );
            let refused = bind(&format!("unix:{name}"), &place).unwrap_err();
            assert!(refused.to_string().starts_with(&words), "{refused}");
            let foreseen = Listener::look_at(&path).unwrap_err();
            assert_eq!(foreseen.to_string(), refused.to_string());
            assert!(path.symlink_metadata().is_ok(), "{name} stays");
        }
        assert_eq!(std::fs::read(place.join("a")).unwrap(), b"x");
        assert!(Listener::look_at(&place.join("new")).is_ok());
        let within = Listener::look_at(&place.join("a/new")).unwrap_err();
        assert!(matches!(within, BindError::Unix { .. }), "{within}");
        let none = Listener::bind(&"unix:a".parse().unwrap(), None);
        assert!(matches!(none, Err(BindError::NoDirectory { .. })));
    }

    #[test]
    fn a_file_that_is_not_ours_any_more_is_left() {
        let place = Scratch::new();
        let path = place.join("s");
        let address = Address::Unix(path.clone());
        let (_listener, file) = Listener::bind(&address, None).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        drop(file);
        assert!(path.exists());
    }

    #[test]
    fn a_listener_that_does_not_accept_is_not_waited_for() {
        let place = Scratch::new();
        let path = place.join("s");
        let silent = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind_to(&silent, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&silent, 0).unwrap();
        // Each look stays in the queue; one more than it has room for would wait for ever.
        let looks: Vec<String> = (0..8)
            .map(|_| {
                let taken = bind("unix:s", &place).unwrap_err();
                assert!(matches!(taken, BindError::Taken { .. }), "{taken}");
                taken.to_string()
            })
            .collect();
        assert!(looks[0].starts_with(&format!("process {}", std::process::id())), "{looks:?}");
        assert!(looks[7].starts_with("a process that does not answer listens on"), "{looks:?}");
        assert!(path.exists());
    }

    #[test]
    fn root_replaces_a_squatter_on_the_owner_s_behalf() {
        if !needs_root("server::listen::root_replaces_a_squatter_on_the_owner_s_behalf") {
            return;
        }
        const OWNER: u32 = 61_040;
        const SQUATTER: u32 = 61_041;
        for (uid, is_replaced) in [(SQUATTER, true), (OWNER, false), (0, false)] {
            let place = Scratch::new();
            place.set_mode(0o3777);
            chown(place.path(), Some(OWNER), Some(OWNER)).unwrap();
            let path = place.join("telemetry.sock");
            let _living = UnixListener::bind(&path).unwrap();
            chown(&path, Some(uid), Some(uid)).unwrap();
            let bound = bind("unix:telemetry.sock", &place);
            assert_eq!(bound.is_ok(), is_replaced, "a socket of {uid}: {bound:?}");
            assert!(is_replaced || matches!(bound, Err(BindError::Taken { .. })));
        }
    }

    #[test]
    fn a_directory_of_a_squatter_is_kept_under_another_name() {
        let test = "server::listen::a_directory_of_a_squatter_is_kept_under_another_name";
        if !needs_root(test) {
            return;
        }
        const OWNER: u32 = 61_040;
        const SQUATTER: u32 = 61_041;
        // Where the directory is not an installed one, a path may have been mistyped.
        for (mode, is_kept_aside) in [(0o3777, true), (0o1777, false)] {
            let place = Scratch::new();
            place.set_mode(mode);
            chown(place.path(), Some(OWNER), Some(OWNER)).unwrap();
            let path = place.join("telemetry.sock");
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("precious"), "all there is").unwrap();
            chown(&path, Some(SQUATTER), Some(SQUATTER)).unwrap();
            let bound = bind("unix:telemetry.sock", &place);
            if !is_kept_aside {
                let words = format!("a directory of user {SQUATTER} is there");
                assert!(bound.unwrap_err().to_string().contains(&words));
                assert!(path.join("precious").exists());
                continue;
            }
            bound.unwrap();
            let names = std::fs::read_dir(place.path()).unwrap();
            let aside = names.map(|entry| entry.unwrap().path()).find(|found| found.is_dir());
            let aside = aside.expect("it is still there");
            let name = aside.file_name().unwrap().to_str().unwrap().to_owned();
            assert!(name.starts_with(&format!("telemetry.sock.of-user-{SQUATTER}.")), "{name}");
            assert_eq!(std::fs::read(aside.join("precious")).unwrap(), b"all there is");
        }
    }

    #[test]
    fn a_port_is_had_once() {
        let place = Scratch::new();
        let (listener, has_file) = bind("127.0.0.1:0", &place).unwrap();
        assert!(!has_file);
        let Some(address) = listener.address() else { panic!("it has one") };
        assert!(matches!(bind(&address.to_string(), &place), Err(BindError::Tcp { .. })));
    }
}
