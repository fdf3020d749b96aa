//! A bank of ten thousand accounts. Each account is a behaviour actor with typed messages, and
//! eight actors transfer money between the accounts concurrently.
//!
//! The program asserts that the total stays the same.

use thalweg::runtime::{Actor, ActorRef, Config, Context, Handler, init, spawn, start};

const ACCOUNTS: usize = 10_000;
const CLERKS: u64 = 8;
const TRANSFERS: u64 = 5_000;

struct Account {
    balance: u64,
}

struct Deposit(u64);
/// The reply is whether the balance was sufficient.
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
        let is_sufficient = self.balance >= amount;
        if is_sufficient {
            self.balance -= amount;
        }
        is_sufficient
    }
}

impl Handler<Balance> for Account {
    type Reply = u64;
    fn handle(&mut self, _: Balance, _: &Context<'_, Self>) -> u64 {
        self.balance
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (transferred, refused, sum) = init(Config::default())?.run(|| {
        let accounts: Vec<_> = (0..ACCOUNTS)
            .map(|_| start(Account { balance: 100 }))
            .collect();
        let clerks: Vec<_> = (0..CLERKS)
            .map(|clerk| {
                let accounts = accounts.clone();
                spawn(move || {
                    (0..TRANSFERS)
                        .filter(|n| transfer(&accounts, clerk * TRANSFERS + n))
                        .count() as u64
                })
            })
            .collect();
        let mut transferred = 0;
        for clerk in clerks {
            transferred += clerk.join().expect("a clerk does not panic");
        }
        let balances = accounts.iter().map(|account| account.call(Balance));
        let sum = balances
            .sum::<Result<u64, _>>()
            .expect("every account replies");
        (transferred, CLERKS * TRANSFERS - transferred, sum)
    });
    println!(
        "{transferred} transfers, {refused} refused; {ACCOUNTS} accounts hold {sum}, as at the start."
    );
    assert_eq!(sum, 100 * ACCOUNTS as u64);
    Ok(())
}

fn transfer(accounts: &[ActorRef<Account>], seed: u64) -> bool {
    let mix = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (from, to) = (mix as usize % ACCOUNTS, (mix >> 32) as usize % ACCOUNTS);
    let amount = mix >> 57;
    let is_sufficient = accounts[from]
        .call(Withdraw(amount))
        .expect("an account does not end");
    if is_sufficient {
        accounts[to]
            .cast(Deposit(amount))
            .expect("an account does not end");
    }
    is_sufficient
}
