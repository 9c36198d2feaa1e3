//! Another user of the machine posts to an agent's port what would end the job if a worker said it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use telltale_harness::{as_user, needs_root, wait_until};

use crate::cluster::job::{Job, TIMEOUT, metrics, signal};

const STRANGER: u32 = 61_053;
/// Waits for the order to finish, and posts nothing.
const WORKER: [&str; 3] = [
    "bash",
    "-c",
    "echo pid $$ epoch $TELLTALE_EPOCH; until test -e $STATE/finish; do sleep 0.1; done",
];
/// Reductions that both ranks have finished.
const FINISHED: u64 = 29;
/// For so long the stranger's job must go on beside the one that the same posts end.
const CALM: Duration = Duration::from_secs(30);

/// Reductions that both ranks have finished, and one that rank 0 alone begins.
fn posts() -> String {
    let one = |rank: u64, sequence: u64, finished: bool| {
        let begun = sequence * 1000;
        let end = if finished { format!(r#","endTime":{}"#, begun + 500) } else { String::new() };
        format!(
            r#"{{"opType":"allreduce","context_rank":{rank},"context_size":2,"bytes":64,"sequence":{sequence},"startTime":{begun},"finished":{finished}{end}}}"#
        )
    };
    let finished = (1..=FINISHED).flat_map(|sequence| [0, 1].map(|rank| one(rank, sequence, true)));
    finished.chain([one(0, FINISHED + 1, false)]).map(|line| line + "\n").collect()
}

/// The same as a request.
fn request() -> String {
    let body = posts();
    format!(
        "POST /log_ccl HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Posts as a user to a port, and gives the answer.
fn post(user: u32, port: u16) -> String {
    let request = request();
    let mut command = Command::new("bash");
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && cat >&3 && cat <&3");
    command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = as_user(user, user, command).spawn().expect("bash is there");
    child.stdin.take().expect("it is piped").write_all(request.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A job of two ranks on one node, whose agent listens on a port.
fn job() -> (Job, u16) {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let port = free.expect("a free port").port();
    let mut job = Job::of_workers(1, 2, &WORKER);
    job.add("a", &["--listen", &format!("127.0.0.1:{port}")]);
    job.wait_printed("a", 1, 0, "epoch 1");
    job.wait_printed("a", 1, 1, "epoch 1");
    (job, port)
}

#[test]
fn what_another_user_posts_to_an_agents_port_is_answered_and_decides_nothing() {
    if !needs_root("telltale::cluster::what_another_user_posts_to_an_agents_port") {
        return;
    }
    let (attacked, port) = job();
    let (control, own_port) = job();
    let answer = post(STRANGER, port);
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains(r#"{"message":"Processed"}"#), "it is answered as any: {answer}");
    assert_eq!(post(0, own_port).lines().next(), answer.lines().next());
    // The workers' own user says the same of the other job, which is restarted for it.
    control.wait_printed("a", 2, 0, "epoch 2");
    let began = std::time::Instant::now();
    wait_until("the attacked job to go on", TIMEOUT, || {
        assert_eq!(attacked.json(&["status"])["epoch"], 1, "{}", attacked.coordinator_log());
        began.elapsed() > CALM
    });
    assert_eq!(attacked.json(&["incidents"]).as_array().map(Vec::len), Some(0));
    let shown = metrics(&attacked.path("a").join("agent.sock"));
    let count = |outcome: &str, number: u64| {
        let line = format!("telltale_agent_records_total{{outcome=\"{outcome}\"}} {number}\n");
        assert!(shown.contains(&line), "{line} in {shown}");
    };
    count("unverified", 2 * FINISHED + 1);
    count("taken", 0);
    let log = attacked.agent_log("a");
    assert!(log.contains(&format!("posts of user {STRANGER} are shown as unverified")), "{log}");
    attacked.finish();
    control.finish();
}

/// Posts while the agent stands still, so that what `then` does to the connection precedes its acceptance.
fn post_before_accepted(agent: Pid, port: u16, then: impl FnOnce(TcpStream)) {
    signal(agent, Signal::STOP);
    let mut client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    client.write_all(request().as_bytes()).expect("it fits in the socket");
    then(client);
}

#[test]
fn posts_of_clients_that_do_not_wait_for_the_answer_decide_nothing_and_are_logged_once() {
    let (job, port) = job();
    let agent = job.tree("a")[0];
    for _ in 0..2 {
        post_before_accepted(agent, port, |client| {
            drop(client);
            signal(agent, Signal::CONT);
        });
    }
    let count = || {
        let line = "posts of unknown users are shown as unverified";
        job.agent_log("a").matches(line).count()
    };
    wait_until("the posts to be logged", TIMEOUT, || count() > 0);
    let taken = format!("outcome=\"unverified\"}} {}\n", 2 * (2 * FINISHED + 1));
    wait_until("both posts to be counted", TIMEOUT, || {
        metrics(&job.path("a").join("agent.sock")).contains(&taken)
    });
    assert_eq!(count(), 1, "{}", job.agent_log("a"));
    assert_eq!(job.json(&["status"])["epoch"], 1);
    job.finish();
}

#[test]
fn posts_of_clients_that_half_close_and_wait_are_evidence() {
    let (job, port) = job();
    let agent = job.tree("a")[0];
    post_before_accepted(agent, port, |mut client| {
        client.shutdown(Shutdown::Write).expect("it is open");
        signal(agent, Signal::CONT);
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("text");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    });
    job.wait_printed("a", 2, 0, "epoch 2");
    job.finish();
}
