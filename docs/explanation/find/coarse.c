// Reno with a planted fault: it counts round-trip times in whole milliseconds, and waits where that is 0.
#include <linux/module.h>
#include <net/tcp.h>

static void coarse_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	if ((tp->srtt_us >> 3) / 1000 == 0) {
		tcp_snd_cwnd_set(tp, 2);
		return;
	}
	tcp_reno_cong_avoid(sk, ack, acked);
}

static u32 coarse_ssthresh(struct sock *sk)
{
	u32 half = tcp_sk(sk)->snd_cwnd / 2;
	return max(half, 2U);
}

static struct tcp_congestion_ops coarse __read_mostly = {
	.name = "coarse",
	.owner = THIS_MODULE,
	.ssthresh = coarse_ssthresh,
	.cong_avoid = coarse_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init coarse_register(void)
{
	return tcp_register_congestion_control(&coarse);
}

static void __exit coarse_unregister(void)
{
	tcp_unregister_congestion_control(&coarse);
}

module_init(coarse_register);
module_exit(coarse_unregister);
MODULE_LICENSE("GPL");
