//! The kernel's table of sockets, `/proc/net/tcp` and `/proc/net/tcp6` (`proc_net_tcp.rst` in its
//! documentation). Reading it takes as long as there are connections, of any origin.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};

use super::{Socket, gone};

/// Bytes of a table that are read: a hundred thousand connections.
const MAX_TABLE_BYTES: u64 = 16 << 20;

/// A socket's own address, and the one that it is connected with.
type Ends = [SocketAddr; 2];

/// The two sockets with these ends, by one check of each table.
pub(super) fn find(first: Ends, second: Ends) -> io::Result<[Socket; 2]> {
    let mapped = |end: SocketAddr| match end.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), end.port()),
        IpAddr::V6(_) => end,
    };
    let mut found = [None; 2];
    if first[0].is_ipv4() {
        take_in("/proc/net/tcp", [first, second], &mut found)?;
    }
    // A socket of both families is in the newer one's table.
    if found.contains(&None) {
        let both = [first, second].map(|ends| ends.map(mapped));
        take_in("/proc/net/tcp6", both, &mut found)?;
    }
    match found {
        [Some(first), Some(second)] => Ok([first, second]),
        _ => Err(gone()),
    }
}

fn take_in(path: &str, ends: [Ends; 2], found: &mut [Option<Socket>; 2]) -> io::Result<()> {
    let wanted = ends.map(|ends| ends.map(in_table));
    let mut reader = BufReader::new(File::open(path)?.take(MAX_TABLE_BYTES));
    let mut line = String::new();
    while found.contains(&None) {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (Some(from), Some(to)) = (fields.next(), fields.next()) else { continue };
        let Some(place) = wanted.iter().position(|ends| [from, to] == *ends) else { continue };
        let state = fields.next().and_then(|text| u8::from_str_radix(text, 16).ok());
        let user = fields.nth(3).and_then(|text| text.parse().ok());
        let inode = fields.nth(1).and_then(|text| text.parse().ok());
        let (Some(state), Some(user), Some(inode)) = (state, user, inode) else { continue };
        found[place] = Some(Socket { user, inode, state });
    }
    Ok(())
}

/// An address as the table has it: words of the machine's own order in hexadecimal digits.
fn in_table(address: SocketAddr) -> String {
    let words = |octets: &[u8]| -> String {
        let words = octets.as_chunks::<4>().0.iter();
        words.map(|word| format!("{:08X}", u32::from_ne_bytes(*word))).collect()
    };
    let ip = match address.ip() {
        IpAddr::V4(address) => words(&address.octets()),
        IpAddr::V6(address) => words(&address.octets()),
    };
    format!("{ip}:{:04X}", address.port())
}
