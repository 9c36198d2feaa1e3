//! The limits of the socket for clients of the allocation server, met by users who mean no harm.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use telltale_harness::{as_user, needs_root, wait_until};

use super::{Bench, alloc};
use crate::cli::command::{Running, TIMEOUT};

/// Holds so many connections, sends so many allocations of a byte by each, and says when all are sent.
const HOLD: &str = "
import socket, struct, sys
path, connections, messages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
held = []
for _ in range(connections):
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].connect(path)
    for buffer in range(messages):
        held[-1].sendall(struct.pack('<B3xiQB3xiQQ', 1, 0, 1, 0, 0, buffer + 1, 0) + bytes(72))
print('held', flush=True)
sys.stdin.read()
";

/// Buffers of one user, which are half of all.
const BUFFERS_OF_A_USER: u64 = 65_536;

fn hold(bench: &Bench, user: u32, connections: u32, messages: u64) -> Running {
    let mut command = Command::new("python3");
    command.args(["-c", HOLD]).arg(bench.socket());
    command.args([connections.to_string(), messages.to_string()]).stdin(Stdio::piped());
    let mut running = Running::start(&mut as_user(user, user, command));
    assert_eq!(running.line(), "held");
    running
}

impl Bench {
    #[track_caller]
    fn refuses(&self, reason: &str, count: f64) {
        let label = format!("reason=\"{reason}\"");
        wait_until(&format!("{count} of {reason}"), TIMEOUT, || {
            self.metric("telltale_legacy_refused_total", &[&label]) == Some(count)
        });
    }

    #[track_caller]
    fn has_connections(&self, count: f64) {
        wait_until(&format!("{count} connections"), TIMEOUT, || {
            self.metric("telltale_legacy_connections", &[]) == Some(count)
        });
    }
}

#[test]
fn a_user_has_16_connections_and_all_have_256() {
    if !needs_root("cli::migrate::limits::a_user_has_16_connections_and_all_have_256") {
        return;
    }
    let bench = Bench::of("n150");
    bench.place.set_mode(0o755);
    let mut users = vec![hold(&bench, 61_100, 17, 0)];
    bench.refuses("too_many_connections", 1.0);
    bench.has_connections(16.0);
    users.extend((61_101..61_116).map(|user| hold(&bench, user, 16, 0)));
    bench.has_connections(256.0);
    users.push(hold(&bench, 61_116, 1, 0));
    bench.refuses("too_many_connections", 2.0);
    bench.has_connections(256.0);
    // Who leaves makes room.
    users.remove(0);
    bench.has_connections(240.0);
    let _late = hold(&bench, 61_117, 16, 0);
    bench.has_connections(256.0);
}

#[test]
fn a_user_has_65536_buffers_all_have_131072_and_who_is_ahead_waits() {
    if !needs_root("cli::migrate::limits::a_user_has_65536_buffers_all_have_131072") {
        return;
    }
    let bench = Bench::of("n150");
    bench.place.set_mode(0o755);
    let begun = Instant::now();
    let one = hold(&bench, 61_121, 1, BUFFERS_OF_A_USER + 1);
    bench.refuses("full", 1.0);
    // 20,000 a second, of which it may be 65,536 ahead; then it waits until it is no more.
    let least = Duration::from_secs_f64(65_536.0 / 20_000.0);
    assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
    let buffers =
        |running: &Running| bench.kind(running.child.id(), "dram")["live_buffers"].as_u64();
    wait_until("its buffers", TIMEOUT, || buffers(&one) == Some(BUFFERS_OF_A_USER));
    let other = hold(&bench, 61_122, 1, BUFFERS_OF_A_USER);
    wait_until("the other's", TIMEOUT, || buffers(&other) == Some(BUFFERS_OF_A_USER));
    let _third = hold(&bench, 61_123, 1, 1);
    bench.refuses("full", 2.0);
}

#[test]
fn a_message_that_has_begun_may_take_ten_seconds() {
    let bench = Bench::of("n150");
    let mut stream = UnixStream::connect(bench.socket()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let begun = Instant::now();
    stream.write_all(&alloc(77, 1)[..50]).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0, "it is disconnected");
    assert!(begun.elapsed() >= Duration::from_secs(10), "{:?}", begun.elapsed());
    bench.refuses("slow", 1.0);
}
