//! Questions from the model to the user of a session, and their answers.

use crate::protocol::{Elicitation, ElicitationAnswer};
use tokio::sync::{mpsc, oneshot};

/// Maximum number of questions in the queue.
const DEPTH: usize = 16;

/// Sender of questions. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct UserQuestions(mpsc::Sender<UserQuestion>);

/// Question with the channel for its answer. The channel closes if the session ends.
#[derive(Debug)]
pub(crate) struct UserQuestion {
    pub asked: Elicitation,
    pub answer: oneshot::Sender<ElicitationAnswer>,
}

impl UserQuestions {
    /// Creates a sender, and the receiver for a session with a user. If the receiver is dropped, questions are not
    /// answered.
    pub(crate) fn new() -> (Self, mpsc::Receiver<UserQuestion>) {
        let (sender, questions) = mpsc::channel(DEPTH);
        (Self(sender), questions)
    }

    /// Returns a sender whose questions are never answered.
    pub(crate) fn without_user() -> Self {
        Self::new().0
    }

    /// Sends a question and waits for the answer. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// Returns the question if nobody can answer it.
    pub(crate) async fn ask(&self, asked: Elicitation) -> Result<ElicitationAnswer, Elicitation> {
        let (answer, answered) = oneshot::channel();
        match self.0.try_send(UserQuestion { asked, answer }) {
            Ok(()) => Ok(answered.await.unwrap_or(ElicitationAnswer::Cancel)),
            Err(mpsc::error::TrySendError::Full(question) | mpsc::error::TrySendError::Closed(question)) => Err(question.asked),
        }
    }
}
