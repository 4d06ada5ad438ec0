"""How many webhooks a second the backend takes from 64 senders while a training runs, next to two other servers."""
