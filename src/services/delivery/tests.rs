//! Tests of delivery during a long outage, and of its memory usage.

use super::*;
use crate::config::{AuditSettings, Environment, OtlpEndpoint};
use crate::services::audit::AuditReceiver;
use crate::store::{OutboxEntry, OutboxLimit, SinkSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const LIMIT: OutboxLimit = OutboxLimit { bytes: 1 << 30, sinks: SinkSet::ALL, pauses: false };

/// Receiver that is unavailable at first and later loses one response.
struct Unreliable {
    is_down: AtomicBool,
    loses_response: AtomicBool,
    received: Mutex<Vec<String>>,
}

impl Receiver for Unreliable {
    fn sink(&self) -> OutboxSink {
        OutboxSink::Audit
    }

    fn batch(&self) -> (usize, usize) {
        (3, 1 << 20)
    }

    fn send<'a>(&'a self, rows: &'a [OutboxRow]) -> BoxFuture<'a, SendResult> {
        Box::pin(async move {
            if self.is_down.load(Ordering::SeqCst) {
                return SendResult { failure: Some(SendFailure::new("connection refused")), ..SendResult::default() };
            }
            self.received.lock().unwrap().extend(rows.iter().map(|row| row.id.clone()));
            if self.loses_response.swap(false, Ordering::SeqCst) {
                return SendResult { failure: Some(SendFailure::new("no response in time")), ..SendResult::default() };
            }
            SendResult { done: rows.len(), ..SendResult::default() }
        })
    }
}

fn entries(count: usize) -> Vec<OutboxEntry> {
    let body = serde_json::json!({"eventName": "aye.call.finished", "attributes": [], "body": {"stringValue": "x".repeat(400)}});
    let body = body.to_string().into_bytes();
    (0..count).map(|_| OutboxEntry { sink: OutboxSink::Audit, kind: "record", body: body.clone() }).collect()
}

#[tokio::test]
async fn after_a_long_outage_every_record_arrives_in_order_with_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    store.enqueue(entries(8), LIMIT).unwrap();
    let service = Arc::new(Unreliable {
        is_down: AtomicBool::new(true),
        loses_response: AtomicBool::new(true),
        received: Mutex::default(),
    });
    let (receiver, stop): (Arc<dyn Receiver>, _) = (service.clone(), CancellationToken::new());
    // This is the number of attempts in a day with the longest delay.
    for attempt in 1..=300_u64 {
        let result = drain(&store, &receiver, true, &stop).await;
        let DrainEnd::Failed { next, .. } = result.end else { panic!("{attempt}: {result:?}") };
        let wait = next.duration_since(jiff::Timestamp::now());
        assert!(wait <= jiff::SignedDuration::from_secs(300), "{attempt}: {wait:?}");
        assert_eq!(store.sinks().unwrap()[0].attempts, attempt);
    }
    assert!(matches!(drain(&store, &receiver, false, &stop).await.end, DrainEnd::NotBefore(_)), "the next attempt is not due");
    service.is_down.store(false, Ordering::SeqCst);
    assert!(matches!(drain(&store, &receiver, true, &stop).await.end, DrainEnd::Failed { .. }));
    assert_eq!(drain(&store, &receiver, true, &stop).await.end, DrainEnd::Empty);
    let mut received = service.received.lock().unwrap().clone();
    assert_eq!(received[..3], received[3..6], "a lost response repeats the batch with the same keys");
    received.drain(..3);
    let count = received.len();
    received.dedup();
    assert_eq!((count, received.len()), (8, 8), "no other record comes twice");
    let state = store.sinks().unwrap().remove(0);
    assert_eq!((state.pending, state.attempts, state.error), (0, 0, None));
}

/// Starts a server that accepts every request, and returns its address.
fn accepting() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut stream, mut line) = (stream, String::new());
                loop {
                    let mut length = 0;
                    loop {
                        line.clear();
                        if reader.read_line(&mut line).unwrap_or(0) == 0 {
                            return;
                        }
                        let header = line.trim().to_ascii_lowercase();
                        if header.is_empty() {
                            break;
                        }
                        if let Some(value) = header.strip_prefix("content-length:") {
                            length = value.trim().parse().unwrap();
                        }
                    }
                    reader.read_exact(&mut vec![0; length]).unwrap();
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
                }
            });
        }
    });
    url
}

/// Returns the resident anonymous memory of this process in KiB. Pages of the program itself are excluded, because a test
/// binary is many times larger than aye.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap()
}

/// Delivers 10,000 records to a local server, and checks that this takes no more memory than a few batches.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures the memory of the process; run it alone: --ignored delivery_needs_the_memory_of_a_few_batches"]
async fn delivery_needs_the_memory_of_a_few_batches() {
    const RECORDS: usize = 10_000;
    const LIMIT_KIB: u64 = 16 << 10;
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    store.enqueue(entries(RECORDS), LIMIT).unwrap();
    let settings = AuditSettings { endpoint: OtlpEndpoint::Url(accepting()), required: false, content: false };
    let receiver: Arc<dyn Receiver> =
        Arc::new(AuditReceiver::new(&settings, &Environment::from_pairs(Vec::<(String, String)>::new())));
    let before = resident_kib();
    let result = drain(&store, &receiver, true, &CancellationToken::new()).await;
    assert_eq!((result.delivered, result.end), (RECORDS as u64, DrainEnd::Empty));
    let grown = resident_kib().saturating_sub(before);
    assert!(grown <= LIMIT_KIB, "memory grew by {grown} KiB");
}
