//! Thread that highlights code line by line. It loads the grammars when code is first shown.
//!
//! Code in a language that is already compiled is highlighted immediately. Code in other languages waits until the
//! quota allows its language to be compiled.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use syntect::parsing::{ParseState, ScopeStack, SyntaxSet};

use super::grammars::{CompileQuota, Grammars};
use super::scope::Meanings;
use super::{LINE, Run, SharedLines, lock_ignoring_poison};

/// Number of lines that are highlighted between two calls to the progress callback.
const BATCH: usize = 256;
/// Idle time after which the grammars are freed.
const IDLE: Duration = Duration::from_secs(20);

static JOBS: OnceLock<Option<Sender<HighlightJob>>> = OnceLock::new();
static WAKE: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();
static LET_GO: OnceLock<fn()> = OnceLock::new();

enum HighlightJob {
    Lines(Lines),
    #[cfg(test)]
    Settle(Sender<()>),
}

struct Lines {
    of: Weak<SharedLines>,
    lines: Vec<String>,
}

/// State of the syntax parser after the line that was highlighted last.
pub(super) struct Parser {
    state: ParseState,
    scopes: ScopeStack,
}

/// Sets the callback that the thread calls when a new frame is needed to show new colours. Only the first call has an
/// effect.
pub(crate) fn on_progress(wake: impl Fn() + Send + Sync + 'static) {
    let _ = WAKE.set(Box::new(wake));
}

/// Sets the callback that the thread calls after freeing the grammars. Only the first call has an effect.
pub(crate) fn on_grammars_freed(call: fn()) {
    let _ = LET_GO.set(call);
}

pub(super) fn send(shared: &Arc<SharedLines>, lines: Vec<String>) {
    post(HighlightJob::Lines(Lines { of: Arc::downgrade(shared), lines }));
}

/// Waits until all requested lines have been highlighted.
#[cfg(test)]
pub(crate) fn wait_until_idle() {
    let (done, wait) = channel();
    post(HighlightJob::Settle(done));
    let _ = wait.recv();
}

/// Queues a job. If the thread could not be started, the job is dropped and the code stays plain.
fn post(job: HighlightJob) {
    if let Some(jobs) = JOBS.get_or_init(start) {
        let _ = jobs.send(job);
    }
}

fn start() -> Option<Sender<HighlightJob>> {
    let (jobs, queue) = channel();
    let thread = std::thread::Builder::new().name("highlight".to_owned());
    thread.spawn(move || run_worker(&queue)).ok().map(|_| jobs)
}

fn run_worker(queue: &Receiver<HighlightJob>) {
    let mut desk = HighlightQueue { waiting: VecDeque::new(), grammars: Grammars::default(), meanings: Meanings::new() };
    let mut allowance = CompileQuota::new();
    loop {
        for job in queue.try_iter() {
            desk.put(job);
        }
        let wait = match desk.take(&mut allowance, Instant::now()) {
            Ok(Some(piece)) => {
                desk.colour(&piece);
                continue;
            }
            Ok(None) => desk.grammars.is_loaded().then_some(IDLE),
            Err(wait) => Some(wait),
        };
        match wait.map_or_else(|| queue.recv().map_err(|_| RecvTimeoutError::Disconnected), |wait| queue.recv_timeout(wait)) {
            Ok(job) => desk.put(job),
            Err(RecvTimeoutError::Timeout) if desk.waiting.is_empty() => {
                desk.grammars.forget();
                if let Some(call) = LET_GO.get() {
                    call();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Lines waiting to be highlighted, and the grammars to highlight them with.
struct HighlightQueue {
    waiting: VecDeque<CodeFragment>,
    grammars: Grammars,
    meanings: Meanings,
}

/// Lines to highlight, and the name of the grammar to use.
struct CodeFragment {
    lines: Lines,
    grammar: String,
}

impl HighlightQueue {
    /// Handles a job. Code in an unknown language is ignored, so it stays plain.
    fn put(&mut self, job: HighlightJob) {
        match job {
            HighlightJob::Lines(lines) => {
                let grammar = lines.of.upgrade().and_then(|shared| self.grammars.name(&shared.language));
                self.waiting.extend(grammar.map(|grammar| CodeFragment { lines, grammar }));
            }
            #[cfg(test)]
            HighlightJob::Settle(done) => {
                while let Some(piece) = self.waiting.pop_front() {
                    self.colour(&piece);
                }
                let _ = done.send(());
            }
        }
    }

    /// Removes and returns the next fragment in a language that is already compiled. If there is none, returns one in
    /// the most recently requested language. If the quota does not allow that language to be compiled yet, fails with
    /// the time to wait.
    fn take(&mut self, allowance: &mut CompileQuota, now: Instant) -> Result<Option<CodeFragment>, Duration> {
        self.waiting.retain(|piece| piece.lines.of.strong_count() > 0);
        let ready = self.waiting.iter().position(|piece| self.grammars.is_ready(&piece.grammar));
        let next = match (ready, self.waiting.back()) {
            (None, Some(newest)) => {
                allowance.take(now)?;
                self.waiting.iter().position(|piece| piece.grammar == newest.grammar)
            }
            (ready, _) => ready,
        };
        Ok(next.and_then(|next| self.waiting.remove(next)))
    }

    /// Highlights a fragment, stopping early if its code is no longer shown.
    fn colour(&mut self, piece: &CodeFragment) {
        let grammars = self.grammars.make_ready(&piece.grammar);
        for batch in piece.lines.lines.chunks(BATCH) {
            let Some(shared) = piece.lines.of.upgrade() else { return };
            let Some(mut parser) = lock_ignoring_poison(&shared.parser).take().or_else(|| begin(&piece.grammar, grammars)) else {
                return;
            };
            let coloured: Vec<Box<[Run]>> = batch.iter().map(|line| parser.line(line, grammars, &mut self.meanings)).collect();
            *lock_ignoring_poison(&shared.parser) = Some(parser);
            lock_ignoring_poison(&shared.lines).extend(coloured);
            if let Some(wake) = WAKE.get() {
                wake();
            }
        }
    }
}

fn begin(grammar: &str, grammars: &SyntaxSet) -> Option<Parser> {
    let syntax = grammars.find_syntax_by_name(grammar)?;
    Some(Parser { state: ParseState::new(syntax), scopes: ScopeStack::new() })
}

impl Parser {
    fn line(&mut self, line: &str, grammars: &SyntaxSet, meanings: &mut Meanings) -> Box<[Run]> {
        if line.len() > LINE {
            return Box::default();
        }
        let Ok(changes) = self.state.parse_line(&format!("{line}\n"), grammars) else { return Box::default() };
        let mut runs: Vec<Run> = Vec::new();
        for (at, change) in changes {
            self.note(at.min(line.len()), &mut runs, meanings);
            if self.scopes.apply(&change).is_err() {
                break;
            }
        }
        self.note(line.len(), &mut runs, meanings);
        runs.into_boxed_slice()
    }

    /// Records the syntax kind of the current scopes for the text from the end of the last run up to byte `at`.
    fn note(&self, at: usize, runs: &mut Vec<Run>, meanings: &mut Meanings) {
        let begin = runs.last().map_or(0, |(end, _)| usize::from(*end));
        let Ok(end) = u16::try_from(at) else { return };
        if at <= begin {
            return;
        }
        let meaning = meanings.syntax(&self.scopes);
        match runs.last_mut() {
            Some((last, same)) if *same == meaning => *last = end,
            _ => runs.push((end, meaning)),
        }
    }
}
