//! Mallory has a site, which a browser on this machine shows; and he plays with paths and methods.

use crate::attacks::asking::{get_locally, send};
use crate::attacks::fixture::{Fixture, shows_nothing_of_ada};

#[test]
fn a_name_that_is_not_ours_is_not_answered() {
    let Some(fixture) = Fixture::set("a_name_that_is_not_ours_is_not_answered") else { return };
    let address = fixture.service.http.unwrap();
    let port = address.port();
    let ask = |host: &str| {
        send(address, &format!("GET /api/v1/snapshot HTTP/1.1\r\nHost: {host}\r\n\r\n")).status
    };
    for host in ["localhost", &format!("127.0.0.1:{port}"), &format!("[::1]:{port}")] {
        assert_eq!(ask(host), 200, "{host}");
    }
    // A site whose name was given this machine's address (DNS rebinding), and names like ours.
    let foreign = [
        "mallory.example",
        &format!("mallory.example:{port}"),
        "localhost.mallory.example",
        "127.0.0.1.mallory.example",
        "localhost@mallory.example",
        "mallory.example#localhost",
        "localhost,mallory.example",
    ];
    for host in foreign {
        assert_eq!(ask(host), 421, "{host}");
    }
    fixture.metric_reaches("telltale_http_requests_total", &[("code", "421")], 7.0);
    for head in ["GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n"] {
        assert_eq!(send(address, head).status, 400, "{head}");
    }
    let target = "GET http://mallory.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(send(address, target).status, 421);
    // What another site is sent, its browser does not hand to it.
    let origin = "Origin: https://mallory.example\r\nSec-Fetch-Site: cross-site";
    let head = format!("GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n{origin}\r\n\r\n");
    let answer = send(address, &head);
    let head = answer.head.to_ascii_lowercase();
    assert!(!head.contains("access-control"), "{head}");
    assert!(head.contains("cross-origin-resource-policy: same-origin"), "{head}");
    assert!(head.contains("x-frame-options: deny"), "{head}");
    fixture.still_serves();
}

#[test]
fn paths_lead_nowhere_but_to_what_there_is() {
    let Some(fixture) = Fixture::set("paths_lead_nowhere_but_to_what_there_is") else { return };
    let address = fixture.service.http.unwrap();
    let paths = [
        "/../metrics",
        "/%2e%2e/metrics",
        "/assets/../../../../etc/passwd",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets/....//etc/passwd",
        "/assets//etc/passwd",
        "/assets/\\..\\token",
        "//metrics",
        "/metrics/",
        "/metrics%00",
        "/metrics%2f..",
        "/metrics;x",
        "/METRICS",
        "/api/v1/snapshot/../../../etc/passwd",
        "/api//v1/snapshot",
        "/./metrics",
        "/%6d%65trics",
        "/etc/passwd",
    ];
    for path in paths {
        for answer in [fixture.get(path), get_locally(&fixture.stage.http_socket(), path)] {
            assert_eq!(answer.status, 404, "{path}");
            assert!(!answer.body.contains("root:") && !answer.body.contains("# HELP"), "{path}");
        }
    }
    // A whole address is one of our names and a path, or refused.
    let port = address.port();
    let whole = format!("GET http://localhost:{port}/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let answer = send(address, &whole);
    assert_eq!(answer.status, 200);
    shows_nothing_of_ada(&fixture, &answer.body);
    for target in ["metrics", "*", "localhost:80", "/metrics HTTP/1.1 x", "http://", "/\u{7f}"] {
        let answer = send(address, &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert!((400..500).contains(&answer.status), "{target}: {}", answer.status);
    }
    fixture.metric_reaches("telltale_http_requests_total", &[("code", "404")], 38.0);
    fixture.still_serves();
}

#[test]
fn methods_change_nothing() {
    let Some(fixture) = Fixture::set("methods_change_nothing") else { return };
    let address = fixture.service.http.unwrap();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get"] {
        let request = format!(
            "{method} /metrics HTTP/1.1\r\nHost: localhost\r\nX-Http-Method-Override: GET\r\n\r\n"
        );
        let answer = send(address, &request);
        assert_eq!(answer.status, 405, "{method}");
        assert!(!answer.body.contains("X-Http"), "nothing is echoed: {}", answer.body);
    }
    let answer = send(address, "CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!((400..500).contains(&answer.status), "{}", answer.status);
    fixture.metric_reaches("telltale_http_requests_total", &[("code", "405")], 8.0);
    // Two requests that two servers would read differently are one error.
    let smuggled = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\
                    Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/snapshot HTTP/1.1\r\n\r\n";
    let answer = send(address, smuggled);
    assert!((400..500).contains(&answer.status), "{}", answer.status);
    fixture.still_serves();
}
