//! Execution context for calls: the current tools, the tokens that stop calls, and the channel that receives the
//! results.

use super::backpressure::Backpressure;
use super::call_timeout::{CallTimeout, with_timeout};
use crate::agent::turn::Input;
use crate::policy::redact::{Redactor, Stream};
use crate::ports::{Plan, ProgressSender, ToolRouter};
use crate::protocol::{CallId, ErrorCode, ToolError};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// State shared by all calls in a session.
pub(super) struct CallContext {
    /// Current tools, shared with the session's query handler.
    router: watch::Sender<Arc<dyn ToolRouter>>,
    redactor: Arc<Redactor>,
    room: Backpressure,
    inputs: mpsc::Sender<Input>,
    kill: CancellationToken,
    /// Cancelled when the user interrupts the task, and whenever `kill` is cancelled.
    interrupt: CancellationToken,
}

impl CallContext {
    pub(crate) fn new(
        router: watch::Sender<Arc<dyn ToolRouter>>,
        redactor: Arc<Redactor>,
        room: Backpressure,
        inputs: mpsc::Sender<Input>,
    ) -> Self {
        let kill = CancellationToken::new();
        Self { router, redactor, room, inputs, interrupt: kill.child_token(), kill }
    }

    pub(crate) fn router(&self) -> Arc<dyn ToolRouter> {
        Arc::clone(&self.router.borrow())
    }

    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.redactor)
    }

    pub(crate) fn inputs(&self) -> mpsc::Sender<Input> {
        self.inputs.clone()
    }

    pub(crate) fn backpressure(&self) -> Backpressure {
        self.room.clone()
    }

    /// Returns a token that is cancelled when all calls are killed.
    pub(crate) fn kill_token(&self) -> CancellationToken {
        self.kill.clone()
    }

    /// Returns a token that is cancelled when calls are interrupted or killed.
    pub(crate) fn interrupt_token(&self) -> CancellationToken {
        self.interrupt.clone()
    }

    /// Replaces the tools and the redactor for subsequent calls.
    pub(crate) fn replace(&mut self, router: Arc<dyn ToolRouter>, redactor: Arc<Redactor>) {
        self.router.send_replace(router);
        self.redactor = redactor;
    }

    /// Kills all running calls. Calls that start later are not affected.
    pub(crate) fn kill(&mut self) {
        std::mem::replace(&mut self.kill, CancellationToken::new()).cancel();
        self.interrupt = self.kill.child_token();
    }

    /// Interrupts all running calls except those that change files.
    pub(crate) fn interrupt(&mut self) {
        std::mem::replace(&mut self.interrupt, self.kill.child_token()).cancel();
    }

    /// Spawns the planning of a call. Because planning only reads, it is abandoned on a timeout, and a panic becomes
    /// an ordinary error.
    pub(crate) fn spawn_plan<T>(&self, work: T) -> impl Future<Output = Result<Plan, ToolError>> + use<T>
    where
        T: Future<Output = Result<Plan, ToolError>> + Send + 'static,
    {
        let (killed, work) = (self.interrupt.clone(), tokio::spawn(work));
        async move {
            let planned = with_timeout(work, CallTimeout::Short, &killed, &CancellationToken::new()).await;
            planned.map_or_else(|up| Err(up.error()), |done| done.unwrap_or_else(planning_error))
        }
    }

    /// Returns a relay that sends a call's output to the session. `stopped` is cancelled when the result must no
    /// longer wait for the front end.
    pub(crate) fn output(&self, index: usize, stopped: CancellationToken) -> OutputRelay {
        OutputRelay { index, stopped, redactor: self.redactor(), room: self.backpressure(), inputs: self.inputs() }
    }

    /// Returns the sender of a call's progress to the session. Progress is dropped while the session or the front end
    /// is busy, and after `stopped` is cancelled.
    pub(crate) fn progress(&self, tool_call_id: CallId, stopped: CancellationToken) -> ProgressSender {
        let (room, inputs) = (self.backpressure(), self.inputs());
        ProgressSender::new(move |progress| {
            if !stopped.is_cancelled() && room.is_there() {
                let _ = inputs.try_send(Input::EffectsProgress { tool_call_id: tool_call_id.clone(), progress });
            }
        })
    }
}

fn planning_error(error: JoinError) -> Result<Plan, ToolError> {
    tracing::error!(task = %error.id(), "a tool panicked while planning");
    Err(ToolError::new(ErrorCode::ToolExecutionFailed, "the tool crashed before it changed anything. Try another way."))
}

/// Relay that sends a call's output to the session.
pub(super) struct OutputRelay {
    index: usize,
    stopped: CancellationToken,
    redactor: Arc<Redactor>,
    room: Backpressure,
    inputs: mpsc::Sender<Input>,
}

impl OutputRelay {
    /// Forwards a command's output with secrets redacted until the command ends.
    pub(crate) async fn forward(self, mut chunks: mpsc::Receiver<String>) {
        let Self { index, stopped, redactor, mut room, inputs } = self;
        let mut stream = Stream::new(redactor);
        while let Some(text) = chunks.recv().await {
            let text = stream.push(&text);
            if !text.is_empty() {
                tokio::select! {
                    () = room.wait() => {}
                    // The result does not wait for the front end.
                    () = stopped.cancelled() => {}
                }
                let _ = inputs.send(Input::ToolOutput { index, text }).await;
            }
        }
        let text = stream.finish();
        if !text.is_empty() {
            let _ = inputs.send(Input::ToolOutput { index, text }).await;
        }
    }
}
