//! The thread that loads the grammars when the first code is shown, then colours line after line.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};

use syntect::parsing::{ParseState, ScopeStack, SyntaxSet};

use super::scope::Meanings;
use super::{LINE, Run, Shared, locked};

/// Lines coloured between two signs of progress.
const BATCH: usize = 256;

static JOBS: OnceLock<Option<Sender<Job>>> = OnceLock::new();
static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();
static WAKE: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

enum Job {
    Lines {
        of: Weak<Shared>,
        lines: Vec<String>,
    },
    #[cfg(test)]
    Settle(Sender<()>),
}

/// Where the grammar stands after the last line.
pub(super) struct Parser {
    state: ParseState,
    scopes: ScopeStack,
}

/// Sets what is called, from another thread, when new colours are there and a frame should be drawn. Only the first call counts.
pub fn on_progress(wake: impl Fn() + Send + Sync + 'static) {
    let _ = WAKE.set(Box::new(wake));
}

pub(super) fn send(shared: &Arc<Shared>, lines: Vec<String>) {
    post(Job::Lines { of: Arc::downgrade(shared), lines });
}

/// Waits until everything asked for so far is coloured.
#[cfg(test)]
pub fn settle() {
    let (done, wait) = channel();
    post(Job::Settle(done));
    let _ = wait.recv();
}

/// Without a thread to do it the job is dropped and code stays plain.
fn post(job: Job) {
    if let Some(jobs) = JOBS.get_or_init(start) {
        let _ = jobs.send(job);
    }
}

fn start() -> Option<Sender<Job>> {
    let (jobs, queue) = channel();
    let thread = std::thread::Builder::new().name("highlight".to_owned());
    thread.spawn(move || work(&queue)).ok().map(|_| jobs)
}

fn work(queue: &Receiver<Job>) {
    let mut meanings = Meanings::new();
    while let Ok(job) = queue.recv() {
        match job {
            Job::Lines { of, lines } => colour(&of, &lines, &mut meanings),
            #[cfg(test)]
            Job::Settle(done) => drop(done.send(())),
        }
    }
}

/// Stops early when the code is no longer shown anywhere.
fn colour(of: &Weak<Shared>, lines: &[String], meanings: &mut Meanings) {
    let grammars = GRAMMARS.get_or_init(two_face::syntax::extra_newlines);
    for batch in lines.chunks(BATCH) {
        let Some(shared) = of.upgrade() else { return };
        let Some(mut parser) = locked(&shared.parser).take().or_else(|| begin(&shared.language, grammars)) else { return };
        let coloured: Vec<Box<[Run]>> = batch.iter().map(|line| parser.line(line, grammars, meanings)).collect();
        *locked(&shared.parser) = Some(parser);
        locked(&shared.lines).extend(coloured);
        if let Some(wake) = WAKE.get() {
            wake();
        }
    }
}

fn begin(language: &str, grammars: &SyntaxSet) -> Option<Parser> {
    let syntax = grammars.find_syntax_by_token(language)?;
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

    /// What lies before `at` has the meaning of the scopes as they are now.
    fn note(&self, at: usize, runs: &mut Vec<Run>, meanings: &mut Meanings) {
        let begin = runs.last().map_or(0, |(end, _)| usize::from(*end));
        let Ok(end) = u16::try_from(at) else { return };
        if at <= begin {
            return;
        }
        let meaning = meanings.of(&self.scopes);
        match runs.last_mut() {
            Some((last, same)) if *same == meaning => *last = end,
            _ => runs.push((end, meaning)),
        }
    }
}
