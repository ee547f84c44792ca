//! Server program: its pipes, its standard error, and its exit.

use super::Lines;
use crate::mcp::limits::{ERROR_BYTES, INPUT_CLOSED_TIMEOUT, TERMINATE_TIMEOUT};
use crate::ports::{BoxFuture, LaunchedProgram, Launcher, ServerProgram};
use rmcp::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::JoinHandle;

type End = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// Handle to a running program, not including its pipes. Dropping it ends the program.
pub(in crate::mcp) struct Program {
    end: Mutex<Option<End>>,
    last_words: Arc<Mutex<Vec<u8>>>,
    /// Why aye disconnected the program, if it did.
    cut_off: Arc<OnceLock<String>>,
    errors: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Program {
    pub(in crate::mcp) async fn launch(
        launcher: &dyn Launcher,
        program: ServerProgram,
    ) -> Result<(Self, impl Transport<RoleClient, Error = std::io::Error> + use<>), String> {
        let server = program.server.clone();
        let LaunchedProgram { input, output, errors, end } = launcher.launch(program).await?;
        let last_words = Arc::<Mutex<Vec<u8>>>::default();
        let reader = tokio::spawn(listen(errors, Arc::clone(&last_words), server));
        let cut_off = Arc::<OnceLock<String>>::default();
        let told = Arc::clone(&cut_off);
        let output = Lines::new(output, move |reason| drop(told.set(reason.to_owned())));
        let transport: AsyncRwTransport<
            RoleClient,
            Lines<Box<dyn AsyncRead + Send + Unpin>>,
            Box<dyn AsyncWrite + Send + Unpin>,
        > = AsyncRwTransport::new(output, input);
        Ok((Self { end: Mutex::new(Some(end)), last_words, cut_off, errors: tokio::sync::Mutex::new(Some(reader)) }, transport))
    }

    /// Returns why aye disconnected the program or, failing that, the end of its standard error, which often says why it
    /// exited.
    pub(in crate::mcp) fn output_tail(&self) -> String {
        if let Some(reason) = self.cut_off.get() {
            return reason.clone();
        }
        let kept = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).trim().to_owned()
    }

    /// Waits briefly for any remaining output.
    pub(in crate::mcp) async fn drain_output(&self) {
        // Concurrent callers wait for the same reader, so that none of them terminates the program while another one
        // waits.
        let mut errors = self.errors.lock().await;
        if let Some(reader) = errors.as_mut()
            && tokio::time::timeout(INPUT_CLOSED_TIMEOUT, reader).await.is_ok()
        {
            *errors = None;
        }
    }

    /// Ends the program. Its input has already been closed, so it is first given time to exit.
    pub(in crate::mcp) async fn end(&self) {
        self.drain_output().await;
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(end) = end {
            let _ = tokio::time::timeout(TERMINATE_TIMEOUT, end()).await;
        }
        if let Some(reader) = self.errors.lock().await.take() {
            reader.abort();
        }
    }
}

/// Reads everything that the program writes to standard error, so that it never blocks, and keeps the end of it.
async fn listen(mut errors: Box<dyn AsyncRead + Send + Unpin>, kept: Arc<Mutex<Vec<u8>>>, server: String) {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut chunk).await {
        tracing::trace!(%server, bytes = count, "output on stderr");
        append_tail(&kept, &chunk[..count]);
    }
}

fn append_tail(kept: &Mutex<Vec<u8>>, more: &[u8]) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.extend_from_slice(more);
    let surplus = kept.len().saturating_sub(ERROR_BYTES);
    kept.drain(..surplus);
}
