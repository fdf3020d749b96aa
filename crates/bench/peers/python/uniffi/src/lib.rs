//! The Python peer that uses UniFFI: an await.

uniffi::setup_scaffolding!();

/// Does nothing, on a tokio worker: another thread answers, as for our calls.
#[uniffi::export(async_runtime = "tokio")]
async fn nop() {
    // The task neither panics nor is cancelled.
    let _ = tokio::spawn(async {}).await;
}

/// Does nothing, on the calling thread: no other thread is involved.
#[uniffi::export]
async fn ready() {}
