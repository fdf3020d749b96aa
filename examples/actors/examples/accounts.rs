//! A bank of ten thousand accounts, each an actor with a state and typed messages, and tellers who move money between them.
//!
//! It claims that no money is made or lost, whoever is faster.

use thalweg::runtime::{Actor, ActorRef, Config, Context, Handler, init, spawn, start};

const ACCOUNTS: usize = 10_000;
const TELLERS: u64 = 8;
const MOVES: u64 = 5_000;

struct Account {
    balance: u64,
}

struct Deposit(u64);
/// Answers whether there was enough.
struct Withdraw(u64);
struct Balance;

impl Actor for Account {}

impl Handler<Deposit> for Account {
    type Reply = ();
    fn handle(&mut self, Deposit(amount): Deposit, _: &Context<'_, Self>) {
        self.balance += amount;
    }
}

impl Handler<Withdraw> for Account {
    type Reply = bool;
    fn handle(&mut self, Withdraw(amount): Withdraw, _: &Context<'_, Self>) -> bool {
        let enough = self.balance >= amount;
        if enough {
            self.balance -= amount;
        }
        enough
    }
}

impl Handler<Balance> for Account {
    type Reply = u64;
    fn handle(&mut self, _: Balance, _: &Context<'_, Self>) -> u64 {
        self.balance
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (moved, refused, sum) = init(Config::default())?.run(|| {
        let accounts: Vec<_> = (0..ACCOUNTS)
            .map(|_| start(Account { balance: 100 }))
            .collect();
        let tellers: Vec<_> = (0..TELLERS)
            .map(|teller| {
                let accounts = accounts.clone();
                spawn(move || {
                    (0..MOVES)
                        .filter(|n| transfer(&accounts, teller * MOVES + n))
                        .count() as u64
                })
            })
            .collect();
        let mut moved = 0;
        for teller in tellers {
            moved += teller.join().expect("a teller does not panic");
        }
        let balances = accounts.iter().map(|account| account.call(Balance));
        let sum = balances.sum::<Result<u64, _>>().expect("each answers");
        (moved, TELLERS * MOVES - moved, sum)
    });
    println!(
        "{moved} transfers, {refused} refused; {ACCOUNTS} accounts hold {sum}, as at the beginning."
    );
    assert_eq!(sum, 100 * ACCOUNTS as u64);
    Ok(())
}

fn transfer(accounts: &[ActorRef<Account>], seed: u64) -> bool {
    let mix = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (from, to) = (mix as usize % ACCOUNTS, (mix >> 32) as usize % ACCOUNTS);
    let amount = mix >> 57;
    let enough = accounts[from]
        .call(Withdraw(amount))
        .expect("an account does not end");
    if enough {
        accounts[to]
            .cast(Deposit(amount))
            .expect("an account does not end");
    }
    enough
}
