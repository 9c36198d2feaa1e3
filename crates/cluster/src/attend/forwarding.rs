//! Orders that came over the agent's HTTP, on their way to a coordinator: given while somebody waits
//! for what becomes of them, and never afterwards.

use std::cell::Cell;
use std::time::Duration;

use telltale_schema::text::with_causes;

use crate::intake::server::{NodeOrder, Unmet, Wish};
use crate::node::NodeName;
use crate::operator::{AskError, Operator};

/// How long one coordinator may take for each step towards an answer.
pub(super) const STEP_PATIENCE: Duration = Duration::from_secs(5);

/// Has a coordinator carry out an order, for as long as somebody waits for that and no longer than
/// `patience`: what has not been given until then never is.
pub(super) async fn forward(
    operator: Operator,
    node: NodeName,
    mut wish: Wish,
    patience: Duration,
) {
    let is_given = Cell::new(false);
    let asked = operator.ask(async |client| {
        is_given.set(true);
        match wish.order {
            NodeOrder::Activate => client.readmit(node.as_str()).await,
            NodeOrder::Remove => client.remove(node.as_str()).await,
            NodeOrder::Restart => client.restart().await,
        }
    });
    let asked = tokio::time::timeout(patience, asked);
    let outcome = tokio::select! {
        asked = asked => asked,
        // Who asked has gone.
        () = wish.answer.closed() => return,
    };
    let outcome = match outcome {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(AskError::Late { .. } | AskError::Broken(_))) | Err(_) if is_given.get() => {
            Err(Unmet::PerhapsGiven)
        }
        Ok(Err(error @ AskError::Call(_))) => Err(Unmet::Refused(with_causes(&error))),
        Ok(Err(error)) => Err(Unmet::Unreached(with_causes(&error))),
        Err(_) => Err(Unmet::NotGiven),
    };
    let _ = wish.answer.send(outcome);
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tokio::sync::oneshot;

    use super::*;
    use crate::reach::{CoordinatorAddress, Credentials};

    /// What becomes of an order that three coordinators are tried with that stand still.
    fn tried(step: Duration, patience: Duration, is_awaited: bool) -> Option<Unmet> {
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
            forward(operator, NodeName::new("a").unwrap(), wish, patience).await;
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
