#!/usr/bin/env escript
%% -*- erlang -*-
%%! -noinput +S 1:1 +SDcpu 1:1 +SDio 1 +A 1
%%
%% An echo over SCTP with Erlang's own gen_sctp:
%%
%%     gen_sctp_echo.escript server ADDRESS PORT [OPTION=VALUE]...
%%     gen_sctp_echo.escript client ADDRESS PORT CHUNKS SIZE [OPTION=VALUE]...
%%
%% Options are recbuf, sndbuf (bytes) and nodelay (true, false). One that is not given, or is `default`, is left to the runtime. The
%% client sends all chunks in one burst, and the server sends each of them back. Both print what the runtime asks of the kernel and
%% what it has then; the client also prints `completion_us`, from before the first send to after the last echo: what comes before,
%% such as the runtime's start, is not in it.

-mode(compile).

%% As in kernel/include/inet_sctp.hrl, which Debian has in another package than the runtime.
-record(sctp_sndrcvinfo, {stream, ssn, flags, ppid, context, timetolive, tsn, cumtsn, assoc_id}).
-record(sctp_assoc_change, {state, error, outbound_streams, inbound_streams, assoc_id}).

%% Longer than any stall: the harness has a timeout of its own.
-define(PATIENCE, 600000).

main(["server", Address, Port | Options]) ->
    Socket = open(Options, [{ip, address(Address)}], list_to_integer(Port)),
    ok = gen_sctp:listen(Socket, true),
    io:format("ready~n"),
    echo(Socket);
main(["client", Address, Port, Chunks, Size | Options]) ->
    Socket = open(Options, [], 0),
    Number = list_to_integer(Chunks),
    {ok, #sctp_assoc_change{state = comm_up, assoc_id = Association}} =
        gen_sctp:connect(Socket, address(Address), list_to_integer(Port), [], ?PATIENCE),
    Chunk = binary:copy(<<"x">>, list_to_integer(Size)),
    Begun = erlang:monotonic_time(nanosecond),
    [ok = gen_sctp:send(Socket, Association, 0, Chunk) || _ <- lists:seq(1, Number)],
    receive_all(Socket, Number, byte_size(Chunk)),
    Took = erlang:monotonic_time(nanosecond) - Begun,
    io:format("completion_us ~.3f~n", [Took / 1000]),
    gen_sctp:close(Socket);
main(_) ->
    io:format(standard_error, "server ADDRESS PORT [OPTION=VALUE]... | client ADDRESS PORT CHUNKS SIZE [OPTION=VALUE]...~n", []),
    halt(2).

address(Text) ->
    {ok, Address} = inet:parse_address(Text),
    Address.

%% Opens a socket and says what was asked for and what came of it.
open(Words, More, Port) ->
    Given = lists:append([option(string:split(Word, "=")) || Word <- Words]),
    %% What the runtime makes of these options, its own defaults among them, before it goes to the kernel.
    {ok, Asked} = inet:sctp_options(Given, inet_sctp),
    [say("asked", Name, proplists:get_value(Option, element(6, Asked), default))
     || {Name, Option} <- [{recbuf, recbuf}, {sndbuf, sndbuf}, {nodelay, sctp_nodelay}]],
    {ok, Socket} = gen_sctp:open(Port, More ++ Given ++ [binary, {active, false}]),
    {ok, Has} = inet:getopts(Socket, [recbuf, sndbuf, sctp_nodelay]),
    [say("has", Name, proplists:get_value(Option, Has)) || {Name, Option} <- [{recbuf, recbuf}, {sndbuf, sndbuf}, {nodelay, sctp_nodelay}]],
    Socket.

say(What, Name, Value) ->
    io:format("~s_~s ~p~n", [What, Name, Value]).

option([_, "default"]) -> [];
option(["recbuf", Bytes]) -> [{recbuf, list_to_integer(Bytes)}];
option(["sndbuf", Bytes]) -> [{sndbuf, list_to_integer(Bytes)}];
option(["nodelay", Switch]) -> [{sctp_nodelay, list_to_existing_atom(Switch)}].

%% Sends back what comes, for ever.
echo(Socket) ->
    case gen_sctp:recv(Socket) of
        {ok, {_, _, [#sctp_sndrcvinfo{assoc_id = Association, stream = Stream}], Chunk}} when is_binary(Chunk) ->
            ok = gen_sctp:send(Socket, Association, Stream, Chunk);
        {ok, _Event} ->
            ok
    end,
    echo(Socket).

receive_all(_Socket, 0, _Size) ->
    ok;
receive_all(Socket, Left, Size) ->
    case gen_sctp:recv(Socket, ?PATIENCE) of
        {ok, {_, _, [#sctp_sndrcvinfo{}], Chunk}} when is_binary(Chunk) ->
            Size = byte_size(Chunk),
            receive_all(Socket, Left - 1, Size);
        {ok, {_, _, _, #sctp_assoc_change{state = State}}} when State =/= comm_up ->
            io:format(standard_error, "the association is ~p~n", [State]),
            halt(1);
        {ok, _Event} ->
            receive_all(Socket, Left, Size)
    end.
