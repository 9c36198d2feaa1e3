//! Orders that came over the agent's HTTP, on their way to a coordinator: given while a client waits
//! for what becomes of them, and never afterwards.

use std::cell::Cell;
use std::time::Duration;

use telltale_schema::text::with_causes;

use crate::intake::server::{NodeOrder, Unmet, Wish};
use crate::operator::{Operator, OperatorError};
use telltale_cluster::node::NodeName;

/// How long one coordinator may take for each step towards an answer.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(5);

/// Has a coordinator carry out an order, for as long as a client waits for that and no longer than
/// `timeout`: what has not been given until then never is.
pub(super) async fn forward(operator: Operator, node: NodeName, mut wish: Wish, timeout: Duration) {
    let is_given = Cell::new(false);
    let asked = operator.ask(async |client| {
        is_given.set(true);
        match wish.order {
            NodeOrder::Activate => client.readmit(node.as_str()).await,
            NodeOrder::Remove => client.remove(node.as_str()).await,
            NodeOrder::Restart => client.restart().await,
        }
    });
    let asked = tokio::time::timeout(timeout, asked);
    let outcome = tokio::select! {
        asked = asked => asked,
        // Who asked has gone.
        () = wish.answer.closed() => return,
    };
    let outcome = match outcome {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(OperatorError::Late { .. } | OperatorError::Broken(_))) | Err(_)
            if is_given.get() =>
        {
            Err(Unmet::PerhapsGiven)
        }
        Ok(Err(error @ OperatorError::Call(_))) => Err(Unmet::Refused(with_causes(&error))),
        Ok(Err(error)) => Err(Unmet::Unreached(with_causes(&error))),
        Err(_) => Err(Unmet::NotGiven),
    };
    let _ = wish.answer.send(outcome);
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, pending, ready};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::task::{Context, Poll};
    use std::thread::JoinHandle;

    use prost::Message as _;
    use telltale_wire::cluster::message::GetStatusResponse;
    use telltale_wire::cluster::{Payload, RawCodec, SERVICE};
    use tokio::sync::{Notify, oneshot};
    use tonic::body::Body;
    use tonic::codegen::{BoxFuture, Bytes, Service, http};
    use tonic::server::{Grpc, NamedService, UnaryService};
    use tonic::transport::server::TcpIncoming;
    use tonic::{Request, Response, Status};

    use super::*;
    use crate::reach::{CoordinatorAddress, Credentials};

    /// A coordinator that leads, and answers no order.
    #[derive(Debug, Clone)]
    struct Mute {
        given: Arc<Notify>,
    }

    struct TellStatus;

    impl UnaryService<Bytes> for TellStatus {
        type Response = Payload;
        type Future = Ready<Result<Response<Payload>, Status>>;

        fn call(&mut self, _: Request<Bytes>) -> Self::Future {
            let own = GetStatusResponse::default().encode_to_vec();
            ready(Ok(Response::new(Payload { shared: Bytes::new(), own })))
        }
    }

    impl NamedService for Mute {
        const NAME: &'static str = SERVICE;
    }

    impl Service<http::Request<Body>> for Mute {
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = BoxFuture<http::Response<Body>, Infallible>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: http::Request<Body>) -> Self::Future {
            let given = Arc::clone(&self.given);
            Box::pin(async move {
                if request.uri().path().ends_with("/GetStatus") {
                    return Ok(Grpc::new(RawCodec).unary(TellStatus, request).await);
                }
                given.notify_one();
                pending().await
            })
        }
    }

    /// Starts one, with its connections, that ends once an order has come if it `breaks`, else when it is
    /// ordered to.
    fn mute(breaks: bool) -> (CoordinatorAddress, oneshot::Sender<()>, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string().parse().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let given = Arc::new(Notify::new());
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let mute = Mute { given: Arc::clone(&given) };
                let server = tonic::transport::Server::builder().add_service(mute);
                tokio::select! {
                    served = server.serve_with_incoming(TcpIncoming::from(listener)) => served.unwrap(),
                    () = given.notified(), if breaks => {}
                    _ = ended => {}
                }
            });
        });
        (address, end, thread)
    }

    /// What becomes of an order that a coordinator has taken and not answered.
    fn given(breaks: bool, step: Duration, timeout: Duration) -> Option<Unmet> {
        let (address, end, thread) = mute(breaks);
        let operator = Operator::new(vec![address], Credentials::default(), step);
        let (answer, answered) = oneshot::channel();
        let wish = Wish { order: NodeOrder::Remove, answer };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let unmet = runtime.block_on(async {
            forward(operator, NodeName::new("a").unwrap(), wish, timeout).await;
            answered.await.unwrap().err()
        });
        // One that broke has gone.
        let _ = end.send(());
        thread.join().unwrap();
        unmet
    }

    #[test]
    fn an_order_that_was_given_and_not_answered_may_be_carried_out() {
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(3600));
        for (what, breaks, step, timeout) in [
            ("the coordinator takes too long", false, short, long),
            ("the caller waits no longer", false, long, short),
            ("the way breaks", true, long, long),
        ] {
            assert_eq!(given(breaks, step, timeout), Some(Unmet::PerhapsGiven), "{what}");
        }
    }

    /// What becomes of an order that three coordinators are tried with that stand still.
    fn tried(step: Duration, timeout: Duration, is_awaited: bool) -> Option<Unmet> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let still = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let address = |still: &TcpListener| still.local_addr().unwrap().to_string();
        let addresses: Vec<CoordinatorAddress> =
            still.iter().map(|still| address(still).parse().unwrap()).collect();
        let operator = Operator::new(addresses, Credentials::default(), step);
        let (answer, answered) = oneshot::channel();
        let answered = is_awaited.then_some(answered);
        let wish = Wish { order: NodeOrder::Restart, answer };
        runtime.block_on(async {
            forward(operator, NodeName::new("a").unwrap(), wish, timeout).await;
            answered?.await.unwrap().err()
        })
    }

    #[test]
    fn an_order_is_given_up_when_its_time_is_over_or_nobody_waits_for_it() {
        let long = Duration::from_secs(3600);
        let step = Duration::from_millis(100);
        let late = tried(step, step * 3 / 2, true);
        assert_eq!(late, Some(Unmet::NotGiven), "the third is not tried any more");
        assert!(matches!(tried(step, long, true), Some(Unmet::Unreached(_))));
        assert_eq!(tried(long, long, false), None, "at once");
    }
}
