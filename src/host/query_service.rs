//! Answers the queries of a front end that do not go through its session. The service starts immediately, but some
//! queries wait until a session is open.

use super::context::AppContext;
use super::history::SessionHistory;
use super::query::QueryHandler;
use super::review::ReviewService;
use crate::agent::{Account, CHANNEL_DEPTH, SessionQueries};
use crate::protocol::{HostResponse, Query};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Handle to the query service. Cheap to clone.
#[derive(Clone)]
pub(crate) struct QueryService {
    desk: QueryHandler,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    history: Option<(SessionHistory, AppContext)>,
    session: Option<SessionQueries>,
    reviews: Option<(ReviewService, Account)>,
    /// Queries waiting for a history or a session to be opened. If there are more than `CHANNEL_DEPTH`, any further
    /// queries are dropped.
    waiting: Vec<Query>,
}

/// Handle to the running service. Dropping it stops the service.
pub(crate) struct QueryTask {
    end: DropGuard,
    task: JoinHandle<()>,
}

impl QueryTask {
    /// Stops the service once it has answered the pending queries.
    pub(crate) async fn end(self) {
        let Self { end, task } = self;
        drop(end);
        let _ = task.await;
    }
}

impl QueryService {
    pub(crate) fn new(desk: QueryHandler) -> Self {
        Self { desk, state: Arc::default() }
    }

    /// Answers queries until the front end closes its channel.
    pub(crate) fn serve(&self, mut queries: mpsc::Receiver<Query>) -> QueryTask {
        let (service, ended) = (self.clone(), CancellationToken::new());
        let end = ended.clone().drop_guard();
        let task = tokio::spawn(async move {
            loop {
                let query = tokio::select! {
                    query = queries.recv() => query,
                    () = ended.cancelled() => {
                        queries.close();
                        while let Some(query) = queries.recv().await {
                            service.answer(query);
                        }
                        None
                    }
                };
                let Some(query) = query else { return };
                service.answer(query);
            }
        });
        QueryTask { end, task }
    }

    /// Sets the history to use for display and export.
    pub(crate) fn open_history(&self, history: SessionHistory, app: AppContext) {
        self.lock().history = Some((history, app));
        self.answer_pending();
    }

    /// Sets the session that is running.
    pub(crate) fn open_session(&self, session: SessionQueries) {
        self.lock().session = Some(session);
        self.answer_pending();
    }

    /// Sets the service that reviews changes, and the account that pays for reviews.
    pub(crate) fn open_reviews(&self, reviews: ReviewService, account: Account) {
        self.lock().reviews = Some((reviews, account));
        self.answer_pending();
    }

    fn answer_pending(&self) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        for query in waiting {
            self.answer(query);
        }
    }

    fn answer(&self, query: Query) {
        let (history, session, reviews) = {
            let state = self.lock();
            (state.history.clone(), state.session.clone(), state.reviews.clone())
        };
        let events = self.desk.events();
        let query = match (query, reviews) {
            (Query::Review(asked), Some((reviews, account))) => {
                let desk = self.desk.clone();
                return reviews.answer(asked, account, move |told| desk.emit(HostResponse::Review(told)));
            }
            (query, _) => query,
        };
        match (query, history, session) {
            (Query::LookUp(what), ..) => self.desk.run(what),
            (Query::Setup(asked), ..) => self.desk.set_up(asked),
            (Query::LoadHistory { before }, Some((history, _)), _) => history.send_before(before, events),
            (Query::Export { form, path }, Some((history, app)), _) => history.export(app, form, path, events),
            (Query::Session(query), _, Some(session)) => session.answer(query),
            (query @ (Query::LoadHistory { .. } | Query::Export { .. } | Query::Session(_) | Query::Review(_)), ..) => {
                let mut state = self.lock();
                if state.waiting.len() < CHANNEL_DEPTH {
                    state.waiting.push(query);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
