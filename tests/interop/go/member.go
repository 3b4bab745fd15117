package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A member of a group, as groups.py describes it: BOOTSTRAP GROUP TOPIC NAME STRATEGY SESSION_MS POLL_MS.
type member struct {
	bootstrap, group, topic, name, strategy string
	session, poll                           time.Duration
	stopping                                chan struct{}
	gate                                    sync.Cond
	asleep, told                            bool
}

func newMember(words []string) *member {
	millis := func(word string) time.Duration {
		parsed, err := time.ParseDuration(word + "ms")
		fail(err)
		return parsed
	}
	m := &member{words[0], words[1], words[2], words[3], words[4], millis(words[5]), millis(words[6]),
		make(chan struct{}), *sync.NewCond(&sync.Mutex{}), false, false}
	go m.listen()
	return m
}

func fail(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

var voice sync.Mutex

func say(event string, rest ...any) {
	voice.Lock()
	defer voice.Unlock()
	fmt.Printf("%s %d", event, time.Now().UnixMilli())
	for _, each := range rest {
		fmt.Printf(" %v", each)
	}
	fmt.Println()
}

func (m *member) listen() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan() && lines.Text() != "stop"; {
		m.gate.L.Lock()
		m.asleep = lines.Text() == "stall"
		m.gate.L.Unlock()
		m.gate.Broadcast()
	}
	close(m.stopping)
}

// Waits while the member is told to stall.
func (m *member) pass() {
	m.gate.L.Lock()
	defer m.gate.L.Unlock()
	for m.asleep {
		if !m.told {
			m.told = true
			say("stalled")
		}
		m.gate.Wait()
	}
	if m.told {
		m.told = false
		say("woken")
	}
}

func numbers(partitions []int32) string {
	slices.Sort(partitions)
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(partitions), " ", ","), "[]")
}

// ---- franz-go

func (m *member) liveFranz() {
	balancers := map[string]kgo.GroupBalancer{"cooperative-sticky": kgo.CooperativeStickyBalancer(), "range": kgo.RangeBalancer()}
	told := func(event string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) { say(event, numbers(partitions[m.topic])) }
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(m.bootstrap), kgo.ConsumerGroup(m.group), kgo.ConsumeTopics(m.topic),
		kgo.ClientID(m.name), kgo.Balancers(balancers[m.strategy]), kgo.SessionTimeout(m.session), kgo.RebalanceTimeout(m.poll),
		kgo.HeartbeatInterval(m.session/6), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, client *kgo.Client, partitions map[string][]int32) {
			_, generation := client.GroupMetadata()
			say("assigned", generation, numbers(partitions[m.topic]))
		}), kgo.OnPartitionsRevoked(told("revoked")), kgo.OnPartitionsLost(told("lost")))
	fail(err)
	for !m.isStopping() {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		fetches := client.PollFetches(ctx)
		cancel()
		fetches.EachError(func(_ string, partition int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) {
				fmt.Println("polling", partition, err)
			}
		})
		records := fetches.Records()
		for _, record := range records {
			say("got", record.Partition, record.Offset, string(record.Value))
		}
		if len(records) > 0 {
			// With records in hand the client puts rebalances off.
			m.pass()
		}
		if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
			fmt.Println("not committed:", err)
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
	say("left")
}

func (m *member) isStopping() bool {
	select {
	case <-m.stopping:
		return true
	default:
		return false
	}
}

// ---- sarama

func (m *member) liveSarama() {
	strategies := map[string]sarama.BalanceStrategy{"range": sarama.NewBalanceStrategyRange(), "sticky": sarama.NewBalanceStrategySticky()}
	config := sarama.NewConfig()
	config.Version = sarama.V4_1_0_0
	config.ClientID = m.name
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	config.Consumer.Group.Session.Timeout = m.session
	config.Consumer.Group.Heartbeat.Interval = m.session / 6
	config.Consumer.Group.Rebalance.Timeout = m.poll
	config.Consumer.Group.Rebalance.Retry.Backoff = 200 * time.Millisecond
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[m.strategy]}
	group, err := sarama.NewConsumerGroup([]string{m.bootstrap}, m.group, config)
	fail(err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-m.stopping
		cancel()
	}()
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{m.topic}, m); err != nil {
			fmt.Println("consuming:", err)
		}
	}
	fail(group.Close())
	say("left")
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	say("assigned", session.GenerationID(), numbers(session.Claims()[m.topic]))
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	say("revoked", "-")
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		m.pass()
		select {
		case record, open := <-claim.Messages():
			if !open {
				return nil
			}
			say("got", record.Partition, record.Offset, string(record.Value))
			session.MarkMessage(record, "")
		case <-session.Context().Done():
			return nil
		}
	}
}
