//! From HTTP/1.1 to HTTP/2 on the same connection (RFC 7540, section 3.2), as libcurl asks for it when
//! it is told to use HTTP/2 without TLS, and as the original's clients therefore do.
//!
//! The request that asks is answered as any other; its answer is then sent as that of the HTTP/2
//! stream 1. The server behind knows nothing of upgrades: it is shown the client's own bytes with the
//! settings from the header added to its first frame, and behind that frame the head of a request as
//! stream 1. So the client gets exactly one acknowledgement of its settings, as it expects.

use std::convert::Infallible;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, HeaderName, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::watch;

use super::connection::{Peer, limit_http2};

/// What a client that goes on in HTTP/2 sends first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A frame's head: 24 bits of length, type, flags, 31 bits of stream.
const FRAME_HEAD_BYTES: usize = 9;
/// The type of a SETTINGS frame.
const SETTINGS: u8 = 4;
/// Bytes of settings, in the header and again in the first frame; the largest frame that a client may
/// send unasked.
const MAX_SETTINGS_BYTES: usize = 16_384;
/// A whole HEADERS frame of stream 1 that ends both head and stream: `POST`, `http`, `/` from HPACK's
/// static table (RFC 7541, appendix A), which leaves the client's dynamic table alone.
const STREAM_ONE: [u8; 12] = [0, 0, 3, 1, 5, 0, 0, 0, 1, 0x83, 0x86, 0x84];
/// How long the client may take to go on in HTTP/2.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request's wish to go on in HTTP/2.
pub(super) struct Wish {
    connection: OnUpgrade,
    settings: Vec<u8>,
}

/// The wish of this request, if it has one.
pub(super) fn wish(request: &mut Request<Incoming>) -> Option<Wish> {
    if request.version() != Version::HTTP_11 {
        return None;
    }
    let settings = settings(request.headers())?;
    Some(Wish { connection: hyper::upgrade::on(request), settings })
}

/// The settings of a wish for `h2c`.
fn settings(headers: &HeaderMap) -> Option<Vec<u8>> {
    let wanted = headers.get(UPGRADE)?.to_str().ok()?;
    let has_h2c = wanted.split(',').any(|one| one.trim().eq_ignore_ascii_case("h2c"));
    let mut named = headers.get_all(HeaderName::from_static("http2-settings")).iter();
    let (Some(settings), None) = (named.next(), named.next()) else { return None };
    let settings = URL_SAFE_NO_PAD.decode(settings).ok()?;
    let fits = settings.len() % 6 == 0 && settings.len() <= MAX_SETTINGS_BYTES;
    (has_h2c && fits).then_some(settings)
}

/// The answer that says so.
pub(super) fn switching() -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.headers_mut().insert(UPGRADE, HeaderValue::from_static("h2c"));
    answer
}

/// Sends `answer` as that of stream 1, and serves what follows until it ends.
pub(super) async fn go_on(
    wish: Wish,
    answer: Response<Body>,
    app: TowerToHyperService<Router>,
    peer: Peer,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(Ok(connection)) = tokio::time::timeout(PATIENCE, wish.connection).await else { return };
    let opened = tokio::time::timeout(PATIENCE, open(connection, &wish.settings)).await;
    // A client that does not go on in HTTP/2 has gone.
    let Ok(Ok(stream)) = opened else { return };
    let answer = Mutex::new(Some(answer));
    let service = service_fn(move |mut request: Request<Incoming>| {
        // Stream 1 is the first that the server sees.
        let ready = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        request.extensions_mut().insert(peer);
        let app = app.clone();
        async move {
            match ready {
                Some(ready) => Ok::<_, Infallible>(ready),
                None => app.call(request).await,
            }
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new()).http2_only();
    limit_http2(&mut builder);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// What the server is shown of a connection whose client goes on in HTTP/2.
async fn open(
    connection: Upgraded,
    settings: &[u8],
) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + Send + 'static> {
    let (mut from, to) = tokio::io::split(TokioIo::new(connection));
    let begin = beginning(&mut from, settings).await?;
    Ok(tokio::io::join(io::Cursor::new(begin).chain(from), to))
}

/// The preface and the first frame from the client, with these settings before its own, then the head
/// of stream 1.
async fn beginning(from: &mut (impl AsyncRead + Unpin), settings: &[u8]) -> io::Result<Vec<u8>> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    let mut preface = [0; PREFACE.len()];
    from.read_exact(&mut preface).await?;
    let mut head = [0; FRAME_HEAD_BYTES];
    from.read_exact(&mut head).await?;
    let [high, middle, low, kind, flags, stream @ ..] = head;
    let length = u32::from_be_bytes([0, high, middle, low]);
    let length = usize::try_from(length).map_err(|_| wrong())?;
    let together = length + settings.len();
    let is_settings = kind == SETTINGS && flags == 0 && stream == [0; 4];
    if &preface != PREFACE || !is_settings || together > MAX_SETTINGS_BYTES {
        return Err(wrong());
    }
    let mut own = vec![0; length];
    from.read_exact(&mut own).await?;
    let [_, high, middle, low] = u32::try_from(together).map_err(|_| wrong())?.to_be_bytes();
    let mut begin = preface.to_vec();
    begin.extend([high, middle, low, SETTINGS, 0, 0, 0, 0, 0]);
    begin.extend(settings);
    begin.extend(own);
    begin.extend(STREAM_ONE);
    Ok(begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(upgrade: &str, settings: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, upgrade.parse().unwrap());
        headers.insert("http2-settings", settings.parse().unwrap());
        headers
    }

    #[test]
    fn a_wish_needs_h2c_and_settings() {
        // MAX_CONCURRENT_STREAMS (3) 100, as libcurl sends it first.
        assert_eq!(settings(&headers("h2c", "AAMAAABk")), Some(vec![0, 3, 0, 0, 0, 100]));
        assert_eq!(settings(&headers("websocket, H2C", "")), Some(vec![]));
        for (upgrade, text) in [("websocket", "AAMAAABk"), ("h2c", "AAMAAAB"), ("h2c", "***")] {
            assert_eq!(settings(&headers(upgrade, text)), None, "{upgrade} {text}");
        }
        let mut twice = headers("h2c", "AAMAAABk");
        twice.append("http2-settings", HeaderValue::from_static("AAMAAABk"));
        assert_eq!(settings(&twice), None);
    }

    #[tokio::test]
    async fn the_server_sees_one_frame_of_settings_and_stream_one() {
        let frame = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 1, 0];
        let sent = [&PREFACE[..], &frame, b"rest"].concat();
        let mut from = &sent[..];
        let begin = beginning(&mut from, &[0, 3, 0, 0, 0, 100]).await.unwrap();
        let head = [0, 0, 12, 4, 0, 0, 0, 0, 0];
        let settings = [0, 3, 0, 0, 0, 100, 0, 4, 0, 0, 1, 0];
        assert_eq!(begin, [&PREFACE[..], &head, &settings, &STREAM_ONE].concat());
        assert_eq!(from, b"rest");
    }

    #[tokio::test]
    async fn whoever_does_not_go_on_in_http2_is_left() {
        let other = [0, 0, 0, 1, 0, 0, 0, 0, 0];
        let acknowledgement = [0, 0, 0, 4, 1, 0, 0, 0, 0];
        let huge = [0xff, 0xff, 0xff, 4, 0, 0, 0, 0, 0];
        for frame in [other, acknowledgement, huge] {
            let sent = [&PREFACE[..], &frame].concat();
            assert!(beginning(&mut &sent[..], &[]).await.is_err(), "{frame:?}");
        }
        let sent = [b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".as_slice(), &[0; 40]].concat();
        assert!(beginning(&mut &sent[..], &[]).await.is_err());
    }
}
