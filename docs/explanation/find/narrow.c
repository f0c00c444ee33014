// Reno with a planted fault: its slow start threshold has 8 bits.
#include <linux/module.h>
#include <net/tcp.h>

static void narrow_avoid(struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

static u32 narrow_ssthresh(struct sock *sk)
{
	u8 low = tcp_sk(sk)->snd_cwnd / 2;
	u32 half = low;
	return max(half, 2U);
}

static struct tcp_congestion_ops narrow __read_mostly = {
	.name = "narrow",
	.owner = THIS_MODULE,
	.ssthresh = narrow_ssthresh,
	.cong_avoid = narrow_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init narrow_register(void)
{
	return tcp_register_congestion_control(&narrow);
}

static void __exit narrow_unregister(void)
{
	tcp_unregister_congestion_control(&narrow);
}

module_init(narrow_register);
module_exit(narrow_unregister);
MODULE_LICENSE("GPL");
