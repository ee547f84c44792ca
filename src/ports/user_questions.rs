//! Questions that the model asks the session's user, and their answers.

use crate::protocol::{Elicitation, ElicitationAnswer};
use tokio::sync::{mpsc, oneshot};

/// Maximum number of queued questions.
const DEPTH: usize = 16;

/// Cheaply cloneable sender for questions.
#[derive(Clone, Debug)]
pub(crate) struct UserQuestions(mpsc::Sender<UserQuestion>);

/// Question, with the channel for its answer. The channel closes if the session ends.
#[derive(Debug)]
pub(crate) struct UserQuestion {
    pub asked: Elicitation,
    pub answer: oneshot::Sender<ElicitationAnswer>,
}

impl UserQuestions {
    /// Creates a sender, and the receiver for a session that has a user. After the receiver is dropped, questions can
    /// no longer be asked.
    pub(crate) fn new() -> (Self, mpsc::Receiver<UserQuestion>) {
        let (sender, questions) = mpsc::channel(DEPTH);
        (Self(sender), questions)
    }

    /// Returns a sender for a session without a user. Asking a question through it always fails.
    pub(crate) fn without_user() -> Self {
        Self::new().0
    }

    /// Sends a question and waits for the answer. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// Returns the question itself if nobody can answer it.
    pub(crate) async fn ask(&self, asked: Elicitation) -> Result<ElicitationAnswer, Elicitation> {
        let (answer, answered) = oneshot::channel();
        match self.0.try_send(UserQuestion { asked, answer }) {
            Ok(()) => Ok(answered.await.unwrap_or(ElicitationAnswer::Cancel)),
            Err(mpsc::error::TrySendError::Full(question) | mpsc::error::TrySendError::Closed(question)) => Err(question.asked),
        }
    }
}
